/// The digest that a file must have.
public struct FileDigest: Sendable, Equatable, Codable {
    /// The functions that can be checked, under the names of RFC 9530's registry where that has them.
    public enum Algorithm: String, Sendable, Codable {
        /// MD5: against accidents, not against people.
        case md5
        /// SHA-1: against accidents, not against people.
        case sha1 = "sha-1"
        /// SHA-256 (FIPS 180-4).
        case sha256 = "sha-256"
        /// SHA-512 (FIPS 180-4).
        case sha512 = "sha-512"
    }

    /// Makes ``hex`` of the file's bytes.
    public var algorithm: Algorithm
    /// Lower-case hexadecimal.
    public var hex: String

    /// What a file must hash to, in lower-case hexadecimal.
    public init(algorithm: Algorithm, hex: String) {
        self.algorithm = algorithm
        self.hex = hex
    }

    /// The digest whose value is `bytes`.
    init(algorithm: Algorithm, bytes: some Sequence<UInt8>) {
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        self.init(algorithm: algorithm, hex: String(decoding: text, as: UTF8.self))
    }

    /// Whether `other` is of other bytes; what two functions make cannot be compared.
    func contradicts(_ other: FileDigest) -> Bool { algorithm == other.algorithm && hex != other.hex }
}

extension FileDigest.Algorithm {
    /// Bytes of a value.
    var length: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }
}
