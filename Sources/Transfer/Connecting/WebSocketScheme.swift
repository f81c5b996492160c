/// The schemes of WebSockets (RFC 6455, section 3).
enum WebSocketScheme: String {
    case ws, wss

    /// Creates the scheme of a URL.
    ///
    /// - Returns: `nil` for another scheme. The rest of the URL is not validated.
    init?(of url: String) {
        let scheme = url.utf8.prefix { $0 != UInt8(ascii: ":") }
        guard scheme.count <= 3 else { return nil }
        self.init(rawValue: String(decoding: scheme.map { $0 | 0x20 }, as: UTF8.self))
    }

    /// The error of a request of another kind with such a scheme.
    static let error = TransferError(
        .protocolNotAllowed, "a URL with ws or wss needs a WebSocket request (SessionManager.webSocket)")
}
