import TaskModel

/// A line of a list of digests.
struct ChecksumLine: Sendable, Equatable {
    var checksum: Checksum
    /// The segments of the path without `.` and empty ones; empty for a digest without a name.
    var path: [String]
    /// The line number, from 1.
    var line: Int
}

/// A reader that parses a list of digests line by line.
struct ChecksumLineReader {
    /// The maximum number of bytes in a line; longer lines are ignored.
    static let maximumLength = 16_384

    private(set) var entries: [ChecksumLine] = []
    /// Whether the list contains lines that are neither digests nor comments.
    private(set) var hasOther = false
    /// The part of a PGP-signed list that contains the next line: content before or without a signed message, the
    /// message's headers, its content, or its signature.
    private var part = Part.content
    /// The digest of `gpg --print-md` that the next lines may continue.
    private var printed: Printed?

    /// A digest as `gpg --print-md` writes it: `NAME: 0123 4567 …`, or `NAME: SHA256 = 01234567 …` for several algorithms.
    /// Its groups continue on lines that begin with blanks, and begin on the next line after a long name.
    private struct Printed {
        var name: ArraySlice<UInt8>
        /// The algorithm's name; `nil` if the digest's length determines it.
        var tag: String?
        var hex: [UInt8] = []
        var line: Int
    }

    private enum Part {
        case content, signedHeaders, signedContent, signature
    }

    /// Parses one line.
    ///
    /// - Parameters:
    ///   - line: the line without its line end.
    ///   - number: the line number, from 1.
    mutating func read(_ line: ArraySlice<UInt8>, number: Int) {
        var line = line
        if line.starts(with: "-----BEGIN PGP SIGNED MESSAGE-----".utf8) {
            // The text before the signed message is not covered by the signature.
            entries = []
            hasOther = false
            part = .signedHeaders
            return
        }
        switch part {
        case .signedHeaders:
            if Self.trimmed(line).isEmpty { part = .signedContent }
            return
        case .signature: return
        case .signedContent:
            if line.starts(with: "-----BEGIN PGP SIGNATURE-----".utf8) {
                part = .signature
                return
            }
            // A line that begins with a dash is dash-escaped (RFC 9580, section 7.2).
            if line.starts(with: "- ".utf8) { line = line.dropFirst(2) }
        case .content: break
        }
        if line.count <= Self.maximumLength, continues(line) { return }
        finish()
        if line.count <= Self.maximumLength, let entry = Self.entry(line, number: number) {
            entries.append(entry)
        } else if line.count <= Self.maximumLength, let begun = Self.printed(line, number: number) {
            printed = begun
        } else if let first = Self.trimmed(line).first, first != UInt8(ascii: "#") {
            hasOther = true
        }
    }

    /// Ends a digest that continued over lines. Called after the last line too.
    mutating func finish() {
        guard let ended = printed else { return }
        printed = nil
        let algorithm =
            ended.tag.map { Checksum.Algorithm(loosely: $0) }
            ?? Checksum.Algorithm.allCases.first { $0.byteCount * 2 == ended.hex.count }
        let path = Self.segments(of: String(decoding: ended.name, as: UTF8.self))
        guard let algorithm, !path.isEmpty, let checksum = Self.checksum(algorithm, ended.hex[...]) else {
            hasOther = true
            return
        }
        entries.append(ChecksumLine(checksum: checksum, path: path, line: ended.line))
    }

    /// The number of digits of the longest digest, SHA-512.
    private static let longestDigest = 128

    /// Appends a line to the digest that is being read.
    ///
    /// - Returns: whether the line belongs to it.
    private mutating func continues(_ line: ArraySlice<UInt8>) -> Bool {
        guard let printed, let first = line.first, let hex = Self.groups(line), !hex.isEmpty,
            // The digest of a long name begins at the beginning of the next line.
            first == 0x20 || first == 0x09 || printed.hex.isEmpty,
            printed.hex.count + hex.count <= Self.longestDigest
        else { return false }
        self.printed?.hex += hex
        return true
    }

    // MARK: - One line

    /// Parses the first line of a digest of `gpg --print-md`. A long name stands alone before its digest.
    private static func printed(_ line: ArraySlice<UInt8>, number: Int) -> Printed? {
        let line = trimmed(line)
        guard let colon = line.lastIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return nil }
        let name = line[..<colon]
        var rest = trimmed(line[(colon + 1)...])
        var tag: String?
        if let sign = rest.firstIndex(of: UInt8(ascii: "=")) {
            let word = trimmed(rest[..<sign])
            guard !word.isEmpty, word.allSatisfy({ $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }) else { return nil }
            tag = String(decoding: word, as: UTF8.self)
            rest = rest[(sign + 1)...]
        }
        guard let hex = groups(rest) else { return nil }
        return Printed(name: name, tag: tag, hex: hex, line: number)
    }

    /// Returns the digits of groups of hexadecimal digits that blanks separate; `nil` if there is anything else.
    private static func groups(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let hex = text.filter { !($0 == 0x20 || $0 == 0x09 || $0 == 0x0D) }
        return hex.allSatisfy(\.isHexDigit) ? Array(hex) : nil
    }

    private static func entry(_ line: ArraySlice<UInt8>, number: Int) -> ChecksumLine? {
        var line = line
        let isEscaped = line.first == UInt8(ascii: "\\")
        if isEscaped { line = line.dropFirst() }
        guard let (checksum, name) = plain(line) ?? tagged(line) ?? prefixed(line) ?? trailing(line) else { return nil }
        guard let name else {
            return isEscaped ? nil : ChecksumLine(checksum: checksum, path: [], line: number)
        }
        guard let bytes = isEscaped ? unescaped(name) : Array(name) else { return nil }
        let path = segments(of: String(decoding: bytes, as: UTF8.self))
        return path.isEmpty ? nil : ChecksumLine(checksum: checksum, path: path, line: number)
    }

    private typealias Parts = (checksum: Checksum, name: ArraySlice<UInt8>?)

    /// Parses `HASH  name`, `HASH *name`, or a hash alone; the digest's length determines the algorithm.
    private static func plain(_ line: ArraySlice<UInt8>) -> Parts? {
        let hex = line.prefix { $0.isHexDigit }
        guard let algorithm = Checksum.Algorithm.allCases.first(where: { $0.byteCount * 2 == hex.count }),
            let checksum = checksum(algorithm, hex)
        else { return nil }
        let rest = line[hex.endIndex...]
        if trimmed(rest).isEmpty { return (checksum, nil) }
        guard let first = rest.first, first == 0x20 || first == 0x09 else { return nil }
        let marked = rest.dropFirst()
        if first == 0x20, let mark = marked.first, mark == 0x20 || mark == UInt8(ascii: "*") {
            return (checksum, marked.dropFirst())
        }
        return (checksum, marked)
    }

    /// Parses `SHA256 (name) = HASH`, also without the spaces as written by OpenSSL.
    private static func tagged(_ line: ArraySlice<UInt8>) -> Parts? {
        let line = trimmed(line)
        var tag = line.prefix { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }
        var rest = line[tag.endIndex...]
        if rest.first == 0x20 { rest = rest.dropFirst() }
        guard rest.first == UInt8(ascii: "("), let close = rest.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let name = rest[(rest.startIndex + 1)..<close]
        let value = trimmed(rest[(close + 1)...])
        guard value.first == UInt8(ascii: "=") else { return nil }
        let family = "SHA2-".utf8
        if tag.starts(with: family) { tag = tag.dropFirst(family.count - 1) }
        let word = (tag.first == UInt8(ascii: "-") ? "sha" : "") + String(decoding: tag, as: UTF8.self)
        guard let algorithm = Checksum.Algorithm(loosely: word),
            let checksum = checksum(algorithm, trimmed(value.dropFirst()))
        else { return nil }
        return (checksum, name)
    }

    /// Parses `sha256:HASH  name`, also with `=` or a blank after the algorithm, and `sha256:HASH` alone.
    private static func prefixed(_ line: ArraySlice<UInt8>) -> Parts? {
        let line = trimmed(line)
        let tag = line.prefix { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }
        guard let algorithm = Checksum.Algorithm(loosely: String(decoding: tag, as: UTF8.self)),
            let separator = line[tag.endIndex...].first, ":= \t".utf8.contains(separator)
        else { return nil }
        let rest = trimmed(line[(tag.endIndex + 1)...])
        let hex = rest.prefix(while: \.isHexDigit)
        guard let checksum = checksum(algorithm, hex) else { return nil }
        var name = rest[hex.endIndex...]
        guard let first = name.first else { return (checksum, nil) }
        guard first == 0x20 || first == 0x09 else { return nil }
        name = trimmed(name)
        return (checksum, name.first == UInt8(ascii: "*") ? name.dropFirst() : name)
    }

    /// Parses `name HASH`; the digest's length determines the algorithm.
    private static func trailing(_ line: ArraySlice<UInt8>) -> Parts? {
        let line = trimmed(line)
        guard let blank = line.lastIndex(where: { $0 == 0x20 || $0 == 0x09 }) else { return nil }
        let (name, hex) = (trimmed(line[..<blank]), line[(blank + 1)...])
        // A colon is for `gpg --print-md`, whose last group may be as long as a digest.
        guard let last = name.last, last != UInt8(ascii: ":"), last != UInt8(ascii: "="), hex.allSatisfy(\.isHexDigit),
            let algorithm = Checksum.Algorithm.allCases.first(where: { $0.byteCount * 2 == hex.count }),
            let checksum = checksum(algorithm, hex)
        else { return nil }
        return (checksum, name)
    }

    private static func checksum(_ algorithm: Checksum.Algorithm, _ hex: ArraySlice<UInt8>) -> Checksum? {
        try? Checksum(parsing: "\(algorithm.rawValue):\(String(decoding: hex, as: UTF8.self))")
    }

    /// Reverses the escaping by GNU coreutils of names that contain a backslash, a line feed or a carriage return.
    private static func unescaped(_ name: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = name
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "\\"): bytes.append(byte)
            case UInt8(ascii: "n"): bytes.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "r"): bytes.append(UInt8(ascii: "\r"))
            default: return nil
            }
        }
        return bytes
    }

    /// Splits a path into segments without `.` and empty ones: `./dir/name` → `dir`, `name`.
    static func segments(of path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }.filter { $0 != "." }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> { FileText.trimmed(bytes) }
}
