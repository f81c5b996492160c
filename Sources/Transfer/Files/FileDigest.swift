import Crypto
import Glibc

/// The digest that a file must have.
public struct FileDigest: Sendable, Equatable {
    /// The functions that can be checked, under the names of RFC 9530's registry where that has them.
    public enum Algorithm: String, Sendable {
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

    /// Reads the file once, from the front. Blocks.
    func verify(_ file: FileDescriptorOwner) throws(TransferError) {
        let found: String
        switch algorithm {
        case .md5: found = try Self.hash(file, with: Insecure.MD5())
        case .sha1: found = try Self.hash(file, with: Insecure.SHA1())
        case .sha256: found = try Self.hash(file, with: SHA256())
        case .sha512: found = try Self.hash(file, with: SHA512())
        }
        guard found == hex else {
            throw TransferError(
                .checksumMismatch, "the \(algorithm.rawValue) of what arrived is \(found), not \(hex)")
        }
    }

    private static func hash<Function: HashFunction>(
        _ file: FileDescriptorOwner, with function: Function
    ) throws(TransferError) -> String {
        var function = function
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { space.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try file.read(into: space, at: offset)
            if count == 0 { break }
            function.update(bufferPointer: UnsafeRawBufferPointer(rebasing: space[..<count]))
            offset += Int64(count)
        }
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: function.finalize().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
