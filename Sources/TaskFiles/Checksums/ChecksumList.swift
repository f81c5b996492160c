package import TaskModel

/// A list of the digests of files, such as the `SHA256SUMS` next to a download.
///
/// Supported formats are those of GNU coreutils (`HASH  name`, `HASH *name`, with escaped names after a leading
/// backslash), of BSD and OpenSSL (`SHA256 (name) = HASH`), of `gpg --print-md` (`name: 0123 4567 …`, over several lines),
/// `sha256:HASH name` and `name HASH`, a file that contains only a digest, and each of these within a PGP-signed
/// message, whose signature is not verified. The text is UTF-8, or UTF-16 with a byte order mark. Lines in no such format are ignored: a name that is
/// missing from the list is an error for the caller that looks it up.
package struct ChecksumList: Sendable, Equatable {
    /// Limits on a list, which is received from a server.
    package enum Limit {
        package static let bytes = 1 << 20
        package static let lines = 65_536
    }

    private let file: String
    private let entries: [ChecksumLine]
    /// Whether the list contains a single digest and nothing else; the digest then applies to any file.
    private let isBareDigest: Bool

    /// Parses a list.
    ///
    /// - Parameter file: the name to print in messages.
    /// - Throws: ``FileError`` for a list that is too long or that is not text in UTF-8 or UTF-16.
    package init(parsing bytes: [UInt8], file: String) throws(FileError) {
        self.file = file
        guard bytes.count <= Limit.bytes else {
            throw FileError(file: file, at: Position(), code: .tooLarge, "is longer than \(Limit.bytes >> 10) KiB")
        }
        var rest = Array(try FileText.decode(bytes, file: file).utf8)[...]
        var reader = ChecksumLineReader()
        var number = 0
        while !rest.isEmpty {
            let line = rest.prefix { $0 != UInt8(ascii: "\n") }
            rest = rest[line.endIndex...].dropFirst()
            number += 1
            guard number <= Limit.lines else {
                throw FileError(
                    file: file, at: Position(line: number), code: .tooLarge,
                    "exceeds the limit of \(Limit.lines) lines in a checksum list")
            }
            reader.read(line.last == UInt8(ascii: "\r") ? line.dropLast() : line, number: number)
        }
        reader.finish()
        entries = reader.entries
        isBareDigest = entries.count == 1 && entries[0].path.isEmpty && !reader.hasOther
    }

    /// Returns the digest of a file, with the strongest algorithm if the list has several.
    ///
    /// An entry matches by its last path segment. If the matching entries contradict each other, only those count whose
    /// whole path is a suffix of `path`.
    ///
    /// - Parameter path: the file's name, or the path of its URL without percent-encoding.
    /// - Throws: ``FileError`` if the list does not contain the file, or contains two different digests of one
    ///   algorithm for it.
    package func checksum(for path: String) throws(FileError) -> Checksum {
        guard let checksum = try find(path) else {
            let name = ChecksumLineReader.segments(of: path).last ?? ""
            throw FileError(file: file, at: Position(), "has no line for the file name \"\(Self.shown(name))\"")
        }
        return checksum
    }

    /// Returns the digest of a file like ``checksum(for:)``; `nil` if the list does not contain the file.
    package func find(_ path: String) throws(FileError) -> Checksum? {
        let wanted = ChecksumLineReader.segments(of: path)
        let name = wanted.last ?? ""
        var found = entries.filter { $0.path.last == name }
        if isBareDigest { found = entries }
        if Self.contradiction(in: found) != nil {
            let closest = found.filter { wanted.reversed().starts(with: $0.path.reversed()) }
            if !closest.isEmpty { found = closest }
        }
        if let line = Self.contradiction(in: found) {
            throw FileError(
                file: file, at: Position(line: line),
                "has a different digest for \"\(Self.shown(name))\" than an earlier line")
        }
        return found.max { $0.checksum.algorithm.strength < $1.checksum.algorithm.strength }?.checksum
    }

    /// Returns the line number of the first digest that differs from an earlier one of the same algorithm.
    private static func contradiction(in entries: [ChecksumLine]) -> Int? {
        var known: [Checksum.Algorithm: Checksum] = [:]
        for entry in entries {
            if let other = known[entry.checksum.algorithm], other != entry.checksum { return entry.line }
            known[entry.checksum.algorithm] = entry.checksum
        }
        return nil
    }

    /// Returns untrusted text in a form suitable for a message: at most 255 characters, with unprintable ones replaced
    /// by `?`.
    private static func shown(_ name: String) -> String {
        String(String.UnicodeScalarView(name.unicodeScalars.prefix(255).map { $0.isPrintable ? $0 : "?" }))
    }
}

extension Unicode.Scalar {
    fileprivate var isPrintable: Bool {
        switch properties.generalCategory {
        case .surrogate, .unassigned, .privateUse: false
        default: !isHidden
        }
    }
}

extension Checksum.Algorithm {
    /// The order of preference between algorithms: a longer digest counts as stronger.
    var strength: Int { byteCount }
}
