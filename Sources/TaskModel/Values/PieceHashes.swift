/// The digests of a file's pieces. With them a corrupt piece is detected and fetched again without the rest of the file
/// (RFC 5854, section 4.1.3).
public struct PieceHashes: Sendable, Hashable {
    /// The maximum size of all digests together, in bytes. Encoded as base64 they must fit into one line of the control
    /// socket.
    public static let maximumByteCount = 512 * 1024

    public var algorithm: Checksum.Algorithm
    /// The piece length in bytes. The last piece may be shorter.
    public var length: Int64
    /// The concatenated digests, each ``Checksum/Algorithm/byteCount`` bytes long.
    public var hashes: [UInt8]

    public init(algorithm: Checksum.Algorithm, length: Int64, hashes: [UInt8]) {
        self.algorithm = algorithm
        self.length = length
        self.hashes = hashes
    }

    /// The number of pieces.
    public var count: Int { hashes.count / algorithm.byteCount }

    /// Returns the digest of one piece.
    ///
    /// - Parameter index: the piece's index, from 0 to ``count`` - 1.
    public subscript(index: Int) -> ArraySlice<UInt8> {
        hashes[(index * algorithm.byteCount)..<((index + 1) * algorithm.byteCount)]
    }

    /// Returns the number of pieces of `length` bytes in a file of `size` bytes.
    package static func count(size: Int64, length: Int64) -> Int64 {
        size / length + (size % length == 0 ? 0 : 1)
    }

    /// Checks the piece length, the size of the digests and, where `size` is known, the number of pieces.
    ///
    /// - Parameter size: the file's size in bytes, where known.
    /// - Throws: ``FieldError`` for `field`, or for a field within it.
    package func check(size: Int64?, field: String = "pieceHashes") throws(FieldError) {
        guard length >= 1 else {
            throw FieldError(field: "\(field).length", message: "must be at least 1 byte")
        }
        guard hashes.count <= Self.maximumByteCount else {
            throw FieldError(
                field: "\(field).hashes", message: "must be at most \(Self.maximumByteCount / 1024) KiB in total")
        }
        guard hashes.count % algorithm.byteCount == 0, !hashes.isEmpty else {
            throw FieldError(
                field: "\(field).hashes",
                message: "must be one or more digests of \(algorithm.byteCount) bytes, as \(algorithm.rawValue) has")
        }
        if let size, size >= 0, Self.count(size: size, length: length) != Int64(count) {
            throw FieldError(
                field: "\(field).hashes",
                message: "are \(count), but \(size) bytes in pieces of \(length) bytes need "
                    + "\(Self.count(size: size, length: length))")
        }
    }
}

extension PieceHashes: Codable {
    package enum Field: String, CodingKey, CaseIterable {
        case algorithm, length, hashes
    }

    /// Decodes the object.
    ///
    /// - Throws: ``FieldError`` with the plain key name, without the path of the enclosing field.
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
