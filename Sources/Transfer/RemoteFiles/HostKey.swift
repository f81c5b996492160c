import Crypto
import FoundationEssentials

/// The public key by which an SSH server proves who it is (RFC 4253, section 6.6).
struct HostKey: Sendable, Equatable {
    /// Bytes; far more than any key has.
    static let maximumLength = 64 * 1024

    /// As in `known_hosts`: `ssh-ed25519`.
    let type: String
    let bytes: [UInt8]

    /// - Returns: `nil` for what does not begin with the name of its type.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 4, bytes.count <= Self.maximumLength else { return nil }
        let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
        guard length > 0, length <= 64, bytes.count >= 4 + length else { return nil }
        let name = bytes[4..<(4 + length)]
        guard name.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        type = String(decoding: name, as: UTF8.self)
        self.bytes = bytes
    }

    /// As `ssh-keygen -l` prints it, without `SHA256:`: base64 without padding.
    var fingerprint: String {
        String(Data(SHA256.hash(data: bytes)).base64EncodedString().prefix { $0 != "=" })
    }

    /// What libssh2 1.10 can be asked to have the server prove itself by, the best first; RSA by SHA-1 alone, which
    /// most servers of today do not offer.
    static let types = [
        "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa",
    ]
}
