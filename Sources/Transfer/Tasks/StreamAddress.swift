import Curl

/// The URL format of streams, `tcp://host:port`.
enum StreamAddress {
    private static let scheme = "tcp://"

    /// Returns the URL of a stream.
    ///
    /// - Parameter host: a name or an address; IPv6 with or without brackets. An invalid host is detected when the URL
    ///   is parsed.
    static func url(host: String, port: Int) -> String {
        let isBare = host.utf8.contains(UInt8(ascii: ":")) && host.utf8.first != UInt8(ascii: "[")
        // A zone is percent-encoded (RFC 6874, section 2).
        let text = (isBare ? "[\(host)]" : host).replacing("%", with: "%25")
        return "\(scheme)\(text):\(port)"
    }

    /// Parses the URL of a stream.
    ///
    /// - Throws: an error if the scheme differs, the port is missing, or the URL has more components.
    static func peer(of url: String) throws(TransferError) -> StreamPeer {
        let bytes = Array(url.utf8)
        func isLetter(_ byte: UInt8, of other: UInt8) -> Bool {
            byte == other || (0x41...0x5A).contains(byte) && byte + 0x20 == other
        }
        guard bytes.count >= scheme.utf8.count, zip(bytes, scheme.utf8).allSatisfy(isLetter) else {
            throw TransferError(.protocolNotAllowed, "a stream's URL must be tcp://host:port")
        }
        var authority = bytes.dropFirst(scheme.utf8.count)
        if authority.last == UInt8(ascii: "/") { authority = authority.dropLast() }
        let invalid = TransferError(.invalidRequest, "the URL has no host and port for a stream")
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")) else { throw invalid }
        let digits = authority[(colon + 1)...]
        guard (1...5).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { throw invalid }
        let port = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        let host = String(decoding: authority[..<colon], as: UTF8.self).replacing("%25", with: "%")
        guard !host.utf8.contains(UInt8(ascii: ":")) || host.utf8.first == UInt8(ascii: "["),
            let peer = StreamPeer(host: host, port: port)
        else { throw invalid }
        return peer
    }
}
