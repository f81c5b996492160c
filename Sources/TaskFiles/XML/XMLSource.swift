import TaskModel

/// The bytes of an XML text, which can create errors located within them.
struct XMLSource {
    /// The maximum size in bytes.
    static let maximumSize = 32 << 20

    /// Valid UTF-8 without a byte order mark and without control characters other than tab, LF and CR.
    let bytes: [UInt8]
    let file: String

    init(_ bytes: [UInt8], file: String) throws(FileError) {
        self.file = file
        guard bytes.count <= Self.maximumSize else {
            throw FileError(
                file: file, at: Position(), code: .tooLarge,
                "is longer than \(Self.maximumSize >> 20) MiB")
        }
        let text = try Self.isLatin1(bytes) ? Self.decodeLatin1(bytes) : FileText.decode(bytes, file: file)
        if let position = FileText.positionOfControlCharacter(in: text) {
            throw FileError(file: file, at: position, "contains a control character; dld reads text files only")
        }
        self.bytes = Array(text.utf8)
    }

    /// The encodings that a declaration may name, in lower case. UTF-16 needs a byte order mark (XML 1.0, section 4.3.3).
    static let encodings: Set<String> = ["utf-8", "utf8", "us-ascii", "utf-16", "iso-8859-1", "latin1"]
    /// The maximum length of an XML declaration in which an encoding is looked for, in bytes.
    private static let declarationLength = 256

    /// Returns whether the XML declaration names ISO 8859-1, whose bytes are the first 256 characters of Unicode.
    private static func isLatin1(_ bytes: [UInt8]) -> Bool {
        guard bytes.starts(with: "<?xml".utf8) else { return false }
        let declaration = bytes.prefix(declarationLength).prefix { $0 != UInt8(ascii: ">") }
        let text = String(decoding: declaration, as: UTF8.self).lowercased().filter { $0 != " " && $0 != "'" }
        return ["iso-8859-1", "latin1"].contains { name in
            text.contains("encoding=\(name)") || text.contains("encoding=\"\(name)\"")
        }
    }

    private static func decodeLatin1(_ bytes: [UInt8]) -> String {
        var scalars = String.UnicodeScalarView()
        for byte in bytes { scalars.append(Unicode.Scalar(byte)) }
        return String(scalars)
    }

    /// Returns an error located at `offset`.
    ///
    /// - Parameter offset: a byte offset from the beginning.
    func fault(at offset: Int, code: ErrorCode = .invalid, _ message: String) -> FileError {
        FileError(
            file: file, at: FileText.position(after: bytes[..<min(offset, bytes.count)]), code: code, message)
    }

    /// Returns a name or a value in a form suitable for a message: at most 64 bytes.
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

    /// Returns whether the byte can begin a name. All characters beyond ASCII are accepted; XML's exact set makes no
    /// difference to the result.
    static func beginsName(_ byte: UInt8) -> Bool {
        byte >= 0x80 || (0x41...0x5A).contains(byte & 0xDF) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ":")
    }

    static func isNameByte(_ byte: UInt8) -> Bool {
        beginsName(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
    }

    /// Returns the character of a numeric reference.
    ///
    /// - Parameter digits: the digits, such as `38` or `x26`.
    /// - Returns: `nil` for an invalid character of XML 1.0 (section 2.2), and for control characters.
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

/// A converter from byte offsets to positions, for offsets in ascending order. Each position is counted from the
/// previous one, because an XML file may consist of a single line.
struct XMLPlaces {
    private let source: XMLSource
    private var offset = 0
    private var position = Position()

    init(_ source: XMLSource) {
        self.source = source
    }

    /// Returns the position at `offset`.
    ///
    /// - Parameter offset: a byte offset from the beginning, not less than that of the previous call.
    mutating func position(at offset: Int) -> Position {
        let passed = source.bytes[self.offset..<max(offset, self.offset)]
        self.offset += passed.count
        let next = FileText.position(after: passed)
        position.column = next.line == 1 ? position.column + next.column - 1 : next.column
        position.line += next.line - 1
        return position
    }
}

/// The namespace bindings of prefixes, maintained per open element.
struct XMLNamespaces {
    /// The bindings of each prefix, innermost last.
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

    /// Returns the namespace bound to a prefix.
    ///
    /// - Parameter prefix: empty for the default namespace.
    /// - Returns: `nil` for a prefix that is not bound.
    func namespace(of prefix: String) -> String? { bindings[prefix]?.last }
}
