import Curl

/// The URL of a WebSocket (RFC 6455, section 3).
struct WebSocketURL {
    let isSecure: Bool
    /// The URL with the scheme `http` or `https`, by which cookies are chosen and the target of the request is known.
    let web: CurlURL
    let peer: StreamPeer

    /// Parses a URL.
    ///
    /// The schemes are replaced before libcurl parses the URL, since libcurl may not know them.
    init(_ text: String) throws(TransferError) {
        guard let scheme = WebSocketScheme(of: text) else {
            throw TransferError(.protocolNotAllowed, "a WebSocket's URL must begin with ws:// or wss://")
        }
        isSecure = scheme == .wss
        let rest = text.utf8.dropFirst(scheme.rawValue.utf8.count)
        guard !rest.contains(UInt8(ascii: "#")) else {
            throw TransferError(.invalidRequest, "a WebSocket's URL has no fragment")
        }
        do throws(CurlError) {
            web = try CurlURL((isSecure ? "https" : "http") + String(Substring(rest)))
        } catch {
            throw .unreadable(text, name: "the URL of the WebSocket")
        }
        guard let peer = StreamPeer(host: web.host, port: web.port) else {
            throw TransferError(.invalidRequest, "the URL of the WebSocket has no usable host")
        }
        self.peer = peer
    }

    /// The value of the `Host` field (RFC 9110, section 7.2).
    var host: String { web.port == (isSecure ? 443 : 80) ? web.host : "\(web.host):\(web.port)" }

    /// The credential in the URL; `nil` if there is none.
    func credential() throws(TransferError) -> Credential? {
        do throws(CurlError) {
            let (user, password) = try web.userInformation()
            guard user != nil || password != nil else { return nil }
            return Credential(user: user ?? "", password: password ?? "")
        } catch {
            throw TransferError(.invalidRequest, "the URL of the WebSocket has an invalid user or password")
        }
    }
}
