import Curl

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

    /// The error of a request that cannot be made: a request of another kind with such a scheme, or any one if libcurl
    /// has no WebSockets.
    ///
    /// - Parameters:
    ///   - version: the version of libcurl.
    ///   - isAvailable: whether libcurl has WebSockets.
    static func error(
        version: String = CurlLibrary.versionNumber, isAvailable: Bool = CurlLibrary.hasWebSockets
    ) -> TransferError {
        let reason =
            isAvailable
            ? "a URL with ws or wss needs a WebSocket request (SessionManager.webSocket)"
            : "this libcurl (\(version)) has no WebSockets: 7.86 or later built with them is needed"
        return TransferError(.protocolNotAllowed, reason)
    }
}
