import TaskModel

/// A list of files' digests, such as the `SHA256SUMS` beside a download.
///
/// Reads what GNU coreutils write (`HASH  name`, `HASH *name`, with names escaped behind a leading back-slash), what
/// BSD and OpenSSL write (`SHA256 (name) = HASH`), a file that holds a digest and nothing else, and all of these in the
/// wrapper of a PGP signature, which is not verified. Lines that are none of these say nothing: a name that the list
/// does not give is an error for whoever asks for it.
package struct ChecksumList: Sendable, Equatable {
    /// Limits on a list, which comes from a server.
    package enum Limit {
        package static let bytes = 1 << 20
        package static let lines = 65_536
        /// Bytes of one line that is read; longer ones say nothing.
        package static let lineLength = 16_384
    }

    struct Entry: Sendable, Equatable {
        var checksum: Checksum
        /// The segments of the path, without those that name no place; empty for a digest without a name.
        var path: [String]
        /// From 1.
        var line: Int
    }

    private let file: String
    private let entries: [Entry]
    /// The list is a digest and nothing else: that of whatever file it lies beside.
    private let isBareDigest: Bool

    /// - Parameter file: the name to print in messages.
    /// - Throws: ``FileError`` for a list that is too long, or that is not text.
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
                    "is more than the \(Limit.lines) lines that a list of digests may have")
            }
            reader.read(line.last == UInt8(ascii: "\r") ? line.dropLast() : line, number: number)
        }
        entries = reader.entries
        isBareDigest = entries.count == 1 && entries[0].path.isEmpty && !reader.hasOther
    }

    /// The digest that the list gives for a file, the strongest where it gives several.
    ///
    /// An entry is known by its last segment. Where entries of several directories have the same, those count whose
    /// whole path ends `path`.
    ///
    /// - Parameter path: the file's name, or the path of its URL without percent-encoding.
    /// - Throws: ``FileError`` where the list does not name the file, or gives two different digests for it.
    package func checksum(for path: String) throws(FileError) -> Checksum {
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
                "gives another digest for '\(Self.shown(name))' than a line above it")
        }
        guard let strongest = found.max(by: { $0.checksum.algorithm.strength < $1.checksum.algorithm.strength }) else {
            throw FileError(file: file, at: Position(), "has no line for the file name '\(Self.shown(name))'")
        }
        return strongest.checksum
    }

    /// - Returns: the first line that gives another digest of an algorithm than one before it.
    private static func contradiction(in entries: [Entry]) -> Int? {
        var known: [Checksum.Algorithm: Checksum] = [:]
        for entry in entries {
            if let other = known[entry.checksum.algorithm], other != entry.checksum { return entry.line }
            known[entry.checksum.algorithm] = entry.checksum
        }
        return nil
    }

    /// A stranger's text as it may stand in a message.
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
    /// Of two algorithms the one with the longer digest is harder to deceive.
    var strength: Int { byteCount }
}
