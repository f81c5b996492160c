/// The digests of a file's pieces: by them a piece that arrived wrong is found, and fetched again alone
/// (RFC 5854, section 4.1.3).
public struct PieceHashes: Sendable, Hashable {
    /// The most bytes that all digests together may have: written as base64 they fit into one line of the control
    /// socket.
    public static let maximumByteCount = 512 * 1024

    public var algorithm: Checksum.Algorithm
    /// Bytes a piece; the last one may be shorter.
    public var length: Int64
    /// The digests, one after another, each of the algorithm's ``Checksum/Algorithm/byteCount``.
    public var hashes: [UInt8]

    public init(algorithm: Checksum.Algorithm, length: Int64, hashes: [UInt8]) {
        self.algorithm = algorithm
        self.length = length
        self.hashes = hashes
    }

    /// How many pieces there are.
    public var count: Int { hashes.count / algorithm.byteCount }

    /// The digest of one piece.
    ///
    /// - Parameter index: from 0, below ``count``.
    public subscript(index: Int) -> ArraySlice<UInt8> {
        hashes[(index * algorithm.byteCount)..<((index + 1) * algorithm.byteCount)]
    }

    /// How many pieces of `length` a file has.
    package static func count(size: Int64, length: Int64) -> Int64 {
        size / length + (size % length == 0 ? 0 : 1)
    }

    /// - Parameter size: the file's, in bytes, where it is known.
    /// - Throws: ``FieldError`` for `field`, or for a field within it.
    package func check(size: Int64?, field: String = "pieceHashes") throws(FieldError) {
        guard length >= 1 else {
            throw FieldError(field: "\(field).length", message: "must be at least 1 byte")
        }
        guard hashes.count <= Self.maximumByteCount else {
            throw FieldError(
                field: "\(field).hashes", message: "are longer than \(Self.maximumByteCount / 1024) KiB together")
        }
        guard hashes.count % algorithm.byteCount == 0, !hashes.isEmpty else {
            throw FieldError(
                field: "\(field).hashes",
                message: "must be one or more digests of \(algorithm.byteCount) bytes, as \(algorithm.rawValue) has")
        }
        if let size, size >= 0, Self.count(size: size, length: length) != Int64(count) {
            throw FieldError(
                field: "\(field).hashes",
                message: "are \(count), and \(size) bytes in pieces of \(length) are "
                    + "\(Self.count(size: size, length: length))")
        }
    }
}

extension PieceHashes: Codable {
    package enum Field: String, CodingKey, CaseIterable {
        case algorithm, length, hashes
    }

    /// - Throws: ``FieldError``, naming the key without what it stands in.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        for key in container.allKeys where Field(rawValue: key.stringValue) == nil {
            let nearest = NearestWord.to(key.stringValue, among: Field.allCases.map(\.rawValue))
            throw FieldError(
                field: key.stringValue,
                message: "is not a field of piece hashes" + (nearest.map { "; did you mean \($0)?" } ?? ""))
        }
        func value<Value: Decodable>(_ field: Field, _ expected: String) throws -> Value {
            guard let value = try? container.decode(Value.self, forKey: AnyKey(stringValue: field.rawValue)) else {
                throw FieldError(field: field.rawValue, message: "must be \(expected)")
            }
            return value
        }
        let words = "one of " + Checksum.Algorithm.allCases.map(\.rawValue).joined(separator: ", ")
        guard let algorithm = Checksum.Algorithm(loosely: try value(.algorithm, words) as String) else {
            throw FieldError(field: Field.algorithm.rawValue, message: "must be \(words)")
        }
        guard let hashes = Base64.decode(try value(.hashes, "the digests in base64")) else {
            throw FieldError(field: Field.hashes.rawValue, message: "must be the digests in base64 (RFC 4648)")
        }
        self.init(algorithm: algorithm, length: try value(.length, "a whole number of bytes"), hashes: hashes)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Field.self)
        try container.encode(algorithm.rawValue, forKey: .algorithm)
        try container.encode(length, forKey: .length)
        try container.encode(Base64.encode(hashes), forKey: .hashes)
    }
}
