import Crypto
import Curl
import FoundationEssentials
import HTTPTypes

/// The opening handshake of a client (RFC 6455, sections 4.1 and 4.2.2): the request's bytes, and the check of the
/// response.
struct WebSocketUpgrade {
    let url: WebSocketURL
    /// The subprotocols on offer.
    let protocols: [String]
    /// The bytes of the request.
    let request: [UInt8]
    private let accept: String

    /// The fields that belong to the engine: a request cannot set them.
    private static let own: Set<String> = [
        "upgrade", "connection", "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions",
        "sec-websocket-accept", "content-length", "transfer-encoding", "expect", "te", "trailer", "proxy-connection",
        "proxy-authorization",
    ]
    private static let field = "sec-websocket-protocol"

    /// Creates a handshake.
    ///
    /// - Parameters:
    ///   - fields: the request's fields.
    ///   - nonce: 16 random bytes.
    init(
        _ url: WebSocketURL, fields: HTTPFields, protocols: [String], nonce: [UInt8]
    ) throws(TransferError) {
        self.url = url
        let named = fields.filter { $0.name.canonicalName == Self.field }.flatMap { Self.words($0.value) }
        let offered = protocols.isEmpty ? named : protocols
        guard offered.allSatisfy(Self.isToken), Set(offered).count == offered.count else {
            throw TransferError(.invalidRequest, "a WebSocket's subprotocols are different words without spaces")
        }
        self.protocols = offered
        let key = Data(nonce).base64EncodedString()
        accept = Self.accept(for: key)
        var lines = ["GET \(url.web.target) HTTP/1.1"]
        if !fields.contains(where: { $0.name.canonicalName == "host" }) { lines.append("Host: \(url.host)") }
        lines += [
            "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13",
        ]
        if !offered.isEmpty { lines.append("Sec-WebSocket-Protocol: " + offered.joined(separator: ", ")) }
        for field in fields where !Self.own.contains(field.name.canonicalName) {
            if field.name.canonicalName != Self.field { lines.append("\(field.name): \(field.value)") }
        }
        request = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    /// Returns the value of `Sec-WebSocket-Accept` that belongs to a key (RFC 6455, section 4.2.2).
    static func accept(for key: String) -> String {
        let digest = Insecure.SHA1.hash(data: Data((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        return Data(digest).base64EncodedString()
    }

    /// Checks the response.
    ///
    /// - Returns: the subprotocol that the server chose; `nil` if it chose none.
    func check(_ head: ResponseHead, now: Int64) throws(TransferError) -> String? {
        let host = url.web.host
        guard head.status == 101 else {
            guard (300...599).contains(head.status) else {
                throw Self.refusal("\(host) answered with status \(head.status) instead of 101")
            }
            let words =
                head.status < 400
                ? "\(host) redirects the WebSocket (status \(head.status)), which is not followed"
                : "\(host) refused the WebSocket with status \(head.status)"
            throw TransferError(
                .httpStatus, words, httpStatus: head.status, retryAfter: head.retryAfter(now: now))
        }
        guard Self.lists("websocket", head.values(of: "upgrade")), Self.lists("upgrade", head.values(of: "connection"))
        else { throw Self.refusal("\(host) did not switch to the WebSocket protocol") }
        guard head.values(of: "sec-websocket-accept") == [accept] else {
            throw Self.refusal("\(host) did not prove that it knows WebSockets: Sec-WebSocket-Accept is wrong")
        }
        guard head.values(of: "sec-websocket-extensions").allSatisfy({ Self.words($0).isEmpty }) else {
            throw Self.refusal("\(host) uses a WebSocket extension that was not offered")
        }
        let chosen = head.values(of: "sec-websocket-protocol")
        guard let first = chosen.first else { return nil }
        guard chosen.count == 1, protocols.contains(first) else {
            throw Self.refusal("\(host) chose a WebSocket subprotocol that was not offered")
        }
        return first
    }

    private static func refusal(_ words: String) -> TransferError { TransferError(.protocolNotAllowed, words) }

    /// Returns the elements of a list in a field's value (RFC 9110, section 5.6.1).
    private static func words(_ value: String) -> [String] {
        value.split(separator: ",").map { String(decoding: FieldText.trimmed($0.utf8), as: UTF8.self) }
            .filter { !$0.isEmpty }
    }

    private static func lists(_ word: String, _ values: [String]) -> Bool {
        values.contains { words($0).contains { $0.lowercased() == word } }
    }

    /// Returns whether a text is a token (RFC 9110, section 5.6.2).
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}
