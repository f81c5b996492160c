/// The required digest of a file.
public struct FileDigest: Sendable, Equatable, Codable {
    /// The supported hash functions, under the names of RFC 9530's registry where it defines them.
    public enum Algorithm: String, Sendable, Codable {
        /// MD5, which protects against accidental corruption but not against attackers.
        case md5
        /// SHA-1, which protects against accidental corruption but not against attackers.
        case sha1 = "sha-1"
        /// SHA-256 (FIPS 180-4).
        case sha256 = "sha-256"
        /// SHA-512 (FIPS 180-4).
        case sha512 = "sha-512"
    }

    /// The hash function that produces ``hex`` from the file's bytes.
    public var algorithm: Algorithm
    /// The digest in lower-case hexadecimal.
    public var hex: String

    /// Creates a digest from hexadecimal digits in any case.
    public init(algorithm: Algorithm, hex: String) {
        self.algorithm = algorithm
        self.hex = hex.lowercased()
    }

    /// Returns a digest by SHA-256 from its 64 hexadecimal digits.
    public static func sha256(_ hex: String) -> FileDigest { FileDigest(algorithm: .sha256, hex: hex) }

    /// Returns a digest by SHA-512 from its 128 hexadecimal digits.
    public static func sha512(_ hex: String) -> FileDigest { FileDigest(algorithm: .sha512, hex: hex) }

    /// Returns a digest by SHA-1 from its 40 hexadecimal digits.
    public static func sha1(_ hex: String) -> FileDigest { FileDigest(algorithm: .sha1, hex: hex) }

    /// Returns a digest by MD5 from its 32 hexadecimal digits.
    public static func md5(_ hex: String) -> FileDigest { FileDigest(algorithm: .md5, hex: hex) }

    /// Creates the digest whose value is `bytes`.
    package init(algorithm: Algorithm, bytes: some Sequence<UInt8>) {
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        self.init(algorithm: algorithm, hex: String(decoding: text, as: UTF8.self))
    }

    /// Whether `other` is a different digest of the same function; digests of different functions cannot be compared.
    package func contradicts(_ other: FileDigest) -> Bool { algorithm == other.algorithm && hex != other.hex }
}

extension FileDigest.Algorithm {
    /// The length of a digest in bytes.
    package var length: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }
}
