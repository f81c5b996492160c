import TaskModel

/// A reader that parses a Metalink tag by tag.
struct MetalinkReader {
    private var xml: XMLReader
    private var places: XMLPlaces
    private let limit: Int
    /// Returns the URL that a relative one stands for.
    private let resolve: ((String) -> String?)?
    /// The roles of the open elements, outermost first.
    private var open: [Place] = []
    private var draft: MetalinkDraft?
    private var files: [Metalink.File] = []
    /// The line numbers of the files by name, to detect duplicates.
    private var taken: [MetalinkName: Int] = [:]

    /// The role of an element.
    private enum Place {
        case version4, version3
        case files, file
        case resources, verification
        case pieces
        case text(Leaf, offset: Int)
        /// An element that is ignored with all its contents.
        case ignored
    }

    /// The kind of an element that contains text.
    private enum Leaf {
        case size
        case hash(Checksum.Algorithm)
        case pieceHash
        case url(rank: Int)
    }

    init(
        _ bytes: [UInt8], file: String, limit: Int, resolve: ((String) -> String?)? = nil
    ) throws(FileError) {
        self.limit = limit
        self.resolve = resolve
        xml = try XMLReader(bytes, file: file)
        places = XMLPlaces(xml.source)
    }

    mutating func read() throws(FileError) -> [Metalink.File] {
        while let tag = try xml.next() {
            switch tag {
            case .start(let element):
                let place = try begin(element)
                open.append(place)
                if case .text = place { xml.keepsText = true }
            case .end:
                if let place = open.popLast() { try end(place) }
            }
        }
        guard !files.isEmpty else { throw xml.source.fault(at: 0, "contains no file") }
        return files
    }

    // MARK: - Beginnings

    private mutating func begin(_ element: XMLElement) throws(FileError) -> Place {
        guard let parent = open.last else { return try root(element) }
        guard Self.namespaces4.contains(element.namespace) || Self.namespaces3.contains(element.namespace) else {
            if case .text = parent { throw hasNoElements(element) }
            return .ignored
        }
        switch (parent, element.name) {
        case (.text, _): throw hasNoElements(element)
        case (.version3, "files"): return .files
        case (.version4, "file"), (.files, "file"): return try beginFile(element)
        case (.file, "size"): return .text(.size, offset: element.offset)
        case (.file, "hash") where isVersion4, (.verification, "hash"):
            return try algorithm(of: element).map { .text(.hash($0), offset: element.offset) } ?? .ignored
        case (.file, "pieces") where isVersion4, (.verification, "pieces"): return try beginPieces(element)
        case (.pieces, "hash"): return try beginPieceHash(element)
        case (.file, "url") where isVersion4:
            let priority = try number(element, "priority", in: 1...999_999)
            return .text(.url(rank: priority ?? 999_999), offset: element.offset)
        case (.file, "resources") where !isVersion4: return .resources
        case (.file, "verification") where !isVersion4: return .verification
        case (.resources, "url"):
            let type = element.attribute("type")?.value.lowercased()
            guard type.map(TaskAddress.schemes.contains) ?? true else { return .ignored }
            let preference = try number(element, "preference", in: 0...100)
            return .text(.url(rank: 100 - (preference ?? -1)), offset: element.offset)
        default: return .ignored
        }
    }

    private static let namespaces4: Set<String> = ["urn:ietf:params:xml:ns:metalink"]
    private static let namespaces3: Set<String> = ["http://www.metalinker.org/", "http://www.metalinker.org"]

    private var isVersion4: Bool {
        if case .version4 = open.first { true } else { false }
    }

    private func root(_ element: XMLElement) throws(FileError) -> Place {
        if element.name == "metalink" {
            if Self.namespaces4.contains(element.namespace) { return .version4 }
            if Self.namespaces3.contains(element.namespace) { return .version3 }
        }
        let shown = { (text: String) in "\"\(xml.source.shown(text.utf8))\"" }
        throw xml.source.fault(
            at: element.offset,
            "is not a Metalink: its root element is \(shown(element.name)) of "
                + (element.namespace.isEmpty ? "no namespace" : "the namespace \(shown(element.namespace))"))
    }

    private func hasNoElements(_ element: XMLElement) -> FileError {
        xml.source.fault(at: element.offset, "an element is not allowed here, only text")
    }

    private mutating func beginFile(_ element: XMLElement) throws(FileError) -> Place {
        guard files.count < limit else {
            throw xml.source.fault(
                at: element.offset, code: .tooLarge,
                "exceeds the limit of \(limit) files in a Metalink")
        }
        guard let attribute = element.attribute("name") else {
            throw xml.source.fault(at: element.offset, "this file has no \"name\"")
        }
        let name: MetalinkName
        do {
            name = try MetalinkName(attribute.value)
        } catch {
            throw xml.source.fault(at: attribute.offset, code: error.code, "\"name\" \(error.message)")
        }
        let position = places.position(at: element.offset)
        if let line = taken.updateValue(position.line, forKey: name) {
            throw xml.source.fault(at: attribute.offset, "\"name\" is the same as that of the file at line \(line)")
        }
        draft = MetalinkDraft(name: name, position: position, offset: element.offset)
        return .file
    }

    private mutating func beginPieces(_ element: XMLElement) throws(FileError) -> Place {
        guard let algorithm = try algorithm(of: element) else { return .ignored }
        guard let length = element.attribute("length") else {
            throw xml.source.fault(at: element.offset, "these pieces have no \"length\"")
        }
        guard let bytes = Int64(digits: length.value.utf8), bytes > 0 else {
            throw xml.source.fault(at: length.offset, "\"length\" must be a number of bytes above 0")
        }
        draft?.pieces = MetalinkDraft.Pieces(algorithm: algorithm, length: bytes, offset: element.offset)
        return .pieces
    }

    /// Validates the piece's number, which only version 3 has.
    private func beginPieceHash(_ element: XMLElement) throws(FileError) -> Place {
        if let piece = element.attribute("piece"), Int64(digits: piece.value.utf8) != draft?.pieces?.count {
            throw xml.source.fault(at: piece.offset, "\"piece\" must count from 0, one by one")
        }
        return .text(.pieceHash, offset: element.offset)
    }

    // MARK: - Attributes

    /// Returns the algorithm of the element's `type`; `nil` for one that dld does not support.
    private func algorithm(of element: XMLElement) throws(FileError) -> Checksum.Algorithm? {
        guard let type = element.attribute("type") else {
            throw xml.source.fault(at: element.offset, "this element has no \"type\", such as sha-256")
        }
        return Checksum.Algorithm(loosely: type.value)
    }

    private func number(
        _ element: XMLElement, _ name: String, in range: ClosedRange<Int64>
    ) throws(FileError) -> Int? {
        guard let attribute = element.attribute(name) else { return nil }
        guard let number = Int64(digits: attribute.value.utf8), range.contains(number) else {
            throw xml.source.fault(
                at: attribute.offset,
                "\"\(name)\" must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(number)
    }

    // MARK: - Ends

    private mutating func end(_ place: Place) throws(FileError) {
        switch place {
        case .text(let leaf, let offset): try apply(leaf, offset: offset)
        case .pieces: draft?.endPieces()
        case .file:
            guard let draft else { return }
            files.append(try draft.file(in: xml.source))
            self.draft = nil
        default: break
        }
    }

    private mutating func apply(_ leaf: Leaf, offset: Int) throws(FileError) {
        var text = xml.text[...]
        while let first = text.first, XMLSource.isBlank(first) { text.removeFirst() }
        while let last = text.last, XMLSource.isBlank(last) { text.removeLast() }
        func refuse(_ message: String, code: ErrorCode = .invalid) -> FileError {
            xml.source.fault(at: offset, code: code, message)
        }
        switch leaf {
        case .size:
            guard draft?.size == nil else { throw refuse("\"size\" is given twice for this file") }
            guard let size = Int64(digits: text) else { throw refuse("\"size\" must be a number of bytes") }
            draft?.size = size
        case .hash(let algorithm):
            do {
                draft?.add(try Checksum(parsing: "\(algorithm.rawValue):\(String(decoding: text, as: UTF8.self))"))
            } catch {
                throw refuse("\"hash\": \(error.message)")
            }
        case .pieceHash:
            guard draft?.pieces?.append(hex: text) == true else {
                throw refuse("\"hash\" of a piece must be a hexadecimal digest of the algorithm that \"pieces\" names")
            }
        case .url(let rank):
            var url = String(decoding: text, as: UTF8.self)
            guard !Self.isOfOtherProtocol(text) else { return }
            if !Self.hasScheme(text), let absolute = resolve?(url) { url = absolute }
            do {
                _ = try TaskAddress(parsing: url)
            } catch {
                throw refuse("\"url\" \(error.message)", code: error.code)
            }
            draft?.add(url, rank: rank)
        }
    }

    private static func isOfOtherProtocol(_ url: ArraySlice<UInt8>) -> Bool {
        let scheme = url.prefix(while: isSchemeByte)
        return hasScheme(url) && !TaskAddress.schemes.contains(String(decoding: scheme, as: UTF8.self).lowercased())
    }

    /// Returns whether a URL is absolute. The name of a relative one may contain a colon only behind a slash.
    private static func hasScheme(_ url: ArraySlice<UInt8>) -> Bool {
        let scheme = url.prefix(while: isSchemeByte)
        return !scheme.isEmpty && url[scheme.endIndex...].first == UInt8(ascii: ":")
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || Array("+-.".utf8).contains(byte)
    }
}

extension Int64 {
    /// Parses decimal digits.
    ///
    /// - Returns: `nil` for anything but digits, and for a value that is too large.
    init?(digits: some Collection<UInt8>) {
        guard !digits.isEmpty, digits.count <= 19, digits.allSatisfy(\.isDigit) else { return nil }
        self.init(String(decoding: digits, as: UTF8.self))
    }
}
