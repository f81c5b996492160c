import TaskModel

/// The bytes of an XML text, and where in them something is wrong.
struct XMLSource {
    /// Valid UTF-8 without a byte order mark, and without control characters.
    let bytes: [UInt8]
    let file: String

    init(_ bytes: [UInt8], file: String) throws(FileError) {
        self.file = file
        guard bytes.count <= XMLReader.Limit.bytes else {
            throw FileError(
                file: file, at: Position(), code: .tooLarge,
                "is longer than \(XMLReader.Limit.bytes >> 20) MiB")
        }
        let text = try FileText.decode(bytes, file: file)
        if let position = FileText.positionOfControlCharacter(in: text) {
            throw FileError(file: file, at: position, "holds a control character; dld reads text files only")
        }
        self.bytes = Array(text.utf8)
    }

    /// - Parameter offset: in bytes from the beginning.
    func fault(at offset: Int, code: ErrorCode = .invalid, _ message: String) -> FileError {
        FileError(
            file: file, at: FileText.position(after: bytes[..<min(offset, bytes.count)]), code: code, message)
    }

    /// A name or a value as it may stand in a message.
    func shown(_ text: some Collection<UInt8>) -> String {
        let cut = String(decoding: text.prefix(64), as: UTF8.self)
        return text.count > 64 ? cut + "…" : cut
    }

    // MARK: - Searching

    func has(_ text: StaticString, at index: Int) -> Bool {
        guard bytes.count - index >= text.utf8CodeUnitCount else { return false }
        for offset in 0..<text.utf8CodeUnitCount where bytes[index + offset] != text.utf8Start[offset] { return false }
        return true
    }

    func index(of byte: UInt8, from start: Int) -> Int? {
        bytes[start...].firstIndex(of: byte)
    }

    func index(of text: StaticString, from start: Int) -> Int? {
        guard start <= bytes.count else { return nil }
        var index = start
        while index < bytes.count {
            guard let found = self.index(of: text.utf8Start[0], from: index) else { return nil }
            if has(text, at: found) { return found }
            index = found + 1
        }
        return nil
    }

    // MARK: - Characters

    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    /// Beyond ASCII every character is let into a name: which of them XML takes makes no difference to what is read.
    static func beginsName(_ byte: UInt8) -> Bool {
        byte >= 0x80 || (0x41...0x5A).contains(byte & 0xDF) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ":")
    }

    static func isNameByte(_ byte: UInt8) -> Bool {
        beginsName(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
    }

    /// - Parameter digits: `38` or `x26`.
    /// - Returns: `nil` for what is no character of XML 1.0 (section 2.2), and for control characters.
    static func scalar(ofReference digits: ArraySlice<UInt8>) -> Unicode.Scalar? {
        let isHexadecimal = digits.first == UInt8(ascii: "x")
        let digits = isHexadecimal ? digits.dropFirst() : digits
        guard digits.allSatisfy({ isHexadecimal ? $0.isHexDigit : $0.isDigit }),
            let value = UInt32(String(decoding: digits, as: UTF8.self), radix: isHexadecimal ? 16 : 10),
            value >= 0x20 || value == 0x09 || value == 0x0A || value == 0x0D,
            !(0x7F..<0xA0).contains(value), value != 0xFFFE, value != 0xFFFF
        else { return nil }
        return Unicode.Scalar(value)
    }
}

/// Places that are asked for in the order of the text, each counted from the one before it: an XML file may be a single
/// line.
struct XMLPlaces {
    private let source: XMLSource
    private var offset = 0
    private var position = Position()

    init(_ source: XMLSource) {
        self.source = source
    }

    /// - Parameter offset: of a tag, in bytes from the beginning; not less than the last one.
    mutating func position(at offset: Int) -> Position {
        let passed = source.bytes[self.offset..<max(offset, self.offset)]
        self.offset += passed.count
        let next = FileText.position(after: passed)
        position.column = next.line == 1 ? position.column + next.column - 1 : next.column
        position.line += next.line - 1
        return position
    }
}

/// Which prefix stands for which namespace, element by element.
struct XMLNamespaces {
    /// The bindings of each prefix, the innermost last.
    private var bindings: [String: [String]] = [
        "": [""], "xml": ["http://www.w3.org/XML/1998/namespace"],
    ]
    /// The prefixes that each open element binds.
    private var bound: [[String]] = []

    mutating func push() { bound.append([]) }

    mutating func bind(_ prefix: String, to namespace: String) {
        bindings[prefix, default: []].append(namespace)
        bound[bound.count - 1].append(prefix)
    }

    mutating func pop() {
        guard let prefixes = bound.popLast() else { return }
        for prefix in prefixes {
            bindings[prefix]?.removeLast()
            if bindings[prefix]?.isEmpty == true { bindings[prefix] = nil }
        }
    }

    /// - Parameter prefix: empty for the default namespace.
    /// - Returns: `nil` for a prefix that is not bound.
    func namespace(of prefix: String) -> String? { bindings[prefix]?.last }
}
