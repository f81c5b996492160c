/// The digest that a downloaded file must have. The text form is `ALGORITHM:HEX`, or the digits alone, whose number
/// tells the algorithm.
public struct Checksum: Hashable, Sendable, CustomStringConvertible {
    public enum Algorithm: String, Sendable, CaseIterable {
        case md5
        case sha1 = "sha-1"
        case sha256 = "sha-256"
        case sha512 = "sha-512"

        /// The digest's length in bytes.
        public var byteCount: Int {
            switch self {
            case .md5: 16
            case .sha1: 20
            case .sha256: 32
            case .sha512: 64
            }
        }

        /// Parses an algorithm name, ignoring case and hyphens: `sha256`, `SHA-256` and `sha-256` are the same.
        package init?(loosely text: some StringProtocol) {
            let plain = text.lowercased().filter { $0 != "-" }
            guard let match = Self.allCases.first(where: { $0.rawValue.filter { $0 != "-" } == plain }) else {
                return nil
            }
            self = match
        }
    }

    public let algorithm: Algorithm
    /// Lower-case hexadecimal, two digits a byte.
    public let hex: String

    /// Parses `ALGORITHM:HEX` or `HEX`.
    ///
    /// - Throws: ``FieldError`` for the field `checksum`.
    public init(parsing text: String) throws(FieldError) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let bare = parts.count == 1 ? Algorithm.allCases.first { $0.byteCount * 2 == text.utf8.count } : nil
        guard let algorithm = bare ?? (parts.count == 2 ? Algorithm(loosely: parts[0]) : nil) else {
            throw FieldError(
                field: "checksum",
                message: "write ALGORITHM:HEX with one of sha-256, sha-512, sha-1, md5, "
                    + "or 64, 128, 40 or 32 hexadecimal digits alone")
        }
        let hex = parts[parts.count - 1].lowercased()
        guard hex.utf8.count == algorithm.byteCount * 2, hex.allSatisfy(\.isHexDigit), hex.utf8.count == hex.count
        else {
            throw FieldError(
                field: "checksum",
                message: "a \(algorithm.rawValue) digest has \(algorithm.byteCount * 2) hexadecimal digits")
        }
        self.algorithm = algorithm
        self.hex = hex
    }

    public var description: String { "\(algorithm.rawValue):\(hex)" }
}
