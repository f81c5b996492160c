/// The other end of a stream: a host and a port, validated for use in a URL.
package struct StreamPeer: Sendable, Hashable {
    /// The longest host name in characters of text (RFC 1035, section 2.3.4).
    package static let longestHost = 253

    /// The host as it was given, without brackets.
    package let host: String
    package let port: Int
    private let authority: String

    /// - Parameters:
    ///   - host: a name or an address; IPv6 with or without brackets, a zone after `%`.
    ///   - port: 1 to 65535.
    /// - Returns: `nil` if either is invalid. In particular, no character is accepted that would end the host in a URL.
    package init?(host: String, port: Int) {
        var bytes = Array(host.utf8)[...]
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") { bytes = bytes.dropFirst().dropLast() }
        guard !bytes.isEmpty, bytes.count <= Self.longestHost, (1...65535).contains(port) else { return nil }
        self.host = String(decoding: bytes, as: UTF8.self)
        self.port = port
        if bytes.contains(UInt8(ascii: ":")) {
            // A single colon comes from a port that was left at the name.
            guard bytes.count(where: { $0 == UInt8(ascii: ":") }) > 1 else { return nil }
            let parts = bytes.split(separator: UInt8(ascii: "%"), maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0].allSatisfy({ Self.isHexDigit($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
            else { return nil }
            if parts.count == 2 {
                guard !parts[1].isEmpty, parts[1].allSatisfy(Self.isNameByte) else { return nil }
                let (address, zone) = (
                    String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self)
                )
                // The escaped zone follows RFC 6874, section 2.
                authority = "[\(address)%25\(zone)]"
            } else {
                authority = "[\(self.host)]"
            }
        } else {
            guard bytes.allSatisfy({ Self.isNameByte($0) || $0 >= 0x80 }) else { return nil }
            authority = self.host
        }
    }

    /// Returns the URL that makes libcurl connect to this peer. Its scheme only selects whether TLS is used.
    func url(secure: Bool) -> String { "\(secure ? "https" : "http")://\(authority):\(port)" }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
