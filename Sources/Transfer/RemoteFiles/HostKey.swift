import Crypto
import FoundationEssentials

/// The public host key of an SSH server (RFC 4253, section 6.6).
struct HostKey: Sendable, Equatable {
    /// The maximum length of a key, in bytes. It is far longer than any key.
    static let maximumLength = 64 * 1024

    /// The key type as in `known_hosts`, such as `ssh-ed25519`.
    let type: String
    let bytes: [UInt8]

    /// Parses a key in SSH wire format.
    ///
    /// - Returns: `nil` if the bytes do not begin with the name of a key type.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 4, bytes.count <= Self.maximumLength else { return nil }
        let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
        guard length > 0, length <= 64, bytes.count >= 4 + length else { return nil }
        let name = bytes[4..<(4 + length)]
        guard name.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        type = String(decoding: name, as: UTF8.self)
        self.bytes = bytes
    }

    /// The SHA-256 fingerprint in base64 without padding: the output of `ssh-keygen -l` without `SHA256:`.
    var fingerprint: String {
        String(Data(SHA256.hash(data: bytes)).base64EncodedString().prefix { $0 != "=" })
    }

    /// The key types that can be requested through libssh2 1.10, the best first. It supports RSA with SHA-1 only, which
    /// most current servers do not offer.
    static let types = [
        "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa",
    ]
}
