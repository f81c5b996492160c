import HTTPTypes
import Testing

@testable import Transfer

@Suite("The opening handshake of a WebSocket")
struct WebSocketUpgradeTests {
    private static let nonce = Array("the sample nonce".utf8)
    private static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    private static func upgrade(
        _ url: String = "ws://example.org/chat?a=b", fields: HTTPFields = [:], protocols: [String] = []
    ) throws(TransferError) -> WebSocketUpgrade {
        try WebSocketUpgrade(WebSocketURL(url), fields: fields, protocols: protocols, nonce: nonce)
    }

    @Test("the key of the RFC has the answer of the RFC")
    func example() {
        #expect(WebSocketUpgrade.accept(for: "dGhlIHNhbXBsZSBub25jZQ==") == Self.accept)
    }

    @Test("the request has the fields of a handshake, and the request's own that do not contradict them")
    func request() throws {
        var fields: HTTPFields = [.userAgent: "test", .connection: "close", .authorization: "Basic x"]
        fields[try #require(HTTPField.Name("Sec-WebSocket-Extensions"))] = "permessage-deflate"
        fields[try #require(HTTPField.Name("Sec-WebSocket-Protocol"))] = "ignored"
        let text = String(
            decoding: try Self.upgrade(fields: fields, protocols: ["v2", "v1"]).request, as: UTF8.self)
        #expect(text.hasPrefix("GET /chat?a=b HTTP/1.1\r\nHost: example.org\r\n") && text.hasSuffix("\r\n\r\n"))
        let lines = text.split(separator: "\r\n").dropFirst(2).map(String.init)
        #expect(
            Set(lines) == [
                "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: v2, v1", "User-Agent: test",
                "Authorization: Basic x",
            ])
        #expect(lines.count == 7)
    }

    @Test(
        "the host of the request has the port, unless it is the scheme's",
        arguments: [
            ("ws://a.test", "a.test"), ("ws://a.test:80/", "a.test"), ("ws://a.test:443/", "a.test:443"),
            ("wss://a.test:443/", "a.test"), ("WSS://A.test:8443/x", "a.test:8443"), ("ws://[::1]:9/", "[::1]:9"),
            ("ws://u:p@a.test/", "a.test"),
        ])
    func hosts(url: String, host: String) throws {
        let text = String(decoding: try Self.upgrade(url).request, as: UTF8.self)
        #expect(text.contains("\r\nHost: \(host)\r\n"))
    }

    @Test(
        "a URL that is none of a WebSocket is refused",
        arguments: [
            ("http://a.test/", TransferError.Code.protocolNotAllowed), ("a.test", .protocolNotAllowed),
            ("ws:", .invalidRequest), ("ws://", .invalidRequest), ("ws://a b/", .invalidRequest),
            ("ws://a.test/#x", .invalidRequest), ("ws://a.test:0/", .invalidRequest),
            ("wss://a.test:99999/", .invalidRequest),
        ])
    func invalidURLs(url: String, code: TransferError.Code) {
        #expect(throws: TransferError.self) { try WebSocketURL(url) }
        do throws(TransferError) { _ = try WebSocketURL(url) } catch { #expect(error.code == code, "\(error)") }
    }

    @Test("a URL's user is the credential")
    func user() throws {
        #expect(try WebSocketURL("ws://u:p%40@a.test/").credential() == Credential(user: "u", password: "p@"))
        #expect(try WebSocketURL("ws://a.test/").credential() == nil)
    }

    @Test("subprotocols are different words", arguments: [["a b"], [""], ["a", "a"], ["a,b"], ["a\r\nX: y"]])
    func invalidProtocols(protocols: [String]) {
        #expect(throws: TransferError.self) { try Self.upgrade(protocols: protocols) }
    }

    private static func head(_ change: (inout [String]) -> Void = { _ in }, status: Int = 101) -> ResponseHead {
        var lines = ["Upgrade: WebSocket", "Connection: keep-alive, upgrade", "Sec-WebSocket-Accept: \(accept)"]
        change(&lines)
        return ResponseHead(status: status, version: "1.1", lines: Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    @Test("a response that agrees is accepted, with the subprotocol that it chooses")
    func accepted() throws {
        let upgrade = try Self.upgrade(protocols: ["v2", "v1"])
        #expect(try upgrade.check(Self.head(), now: 0) == nil)
        #expect(try upgrade.check(Self.head { $0.append("Sec-WebSocket-Protocol: v1") }, now: 0) == "v1")
        #expect(try upgrade.check(Self.head { $0.append("Sec-WebSocket-Extensions: ") }, now: 0) == nil)
    }

    @Test(
        "a response that does not agree is refused",
        arguments: [
            { $0.removeFirst() }, { $0.remove(at: 1) }, { $0.removeLast() }, { $0[2] = "Sec-WebSocket-Accept: x" },
            { $0[0] = "Upgrade: h2c" }, { $0[1] = "Connection: close" },
            { $0.append("Sec-WebSocket-Accept: x") }, { $0.append("Sec-WebSocket-Extensions: permessage-deflate") },
            { $0.append("Sec-WebSocket-Protocol: v3") }, { $0.append("Sec-WebSocket-Protocol: V1") },
            { $0 += ["Sec-WebSocket-Protocol: v1", "Sec-WebSocket-Protocol: v1"] },
        ] as [@Sendable (inout [String]) -> Void])
    func refused(change: @Sendable (inout [String]) -> Void) throws {
        let upgrade = try Self.upgrade(protocols: ["v1"])
        do throws(TransferError) {
            _ = try upgrade.check(Self.head(change), now: 0)
            Issue.record("accepted")
        } catch {
            #expect(error.code == .protocolNotAllowed)
        }
    }

    @Test("another status is the error's", arguments: [200, 301, 401, 404, 503])
    func status(status: Int) throws {
        let upgrade = try Self.upgrade()
        do throws(TransferError) {
            _ = try upgrade.check(Self.head({ $0.append("Retry-After: 7") }, status: status), now: 0)
            Issue.record("accepted")
        } catch {
            #expect(error.code == (status == 200 ? .protocolNotAllowed : .httpStatus))
            #expect(error.httpStatus == (status == 200 ? nil : status))
            if status == 503 { #expect(error.retryAfter == 7) }
        }
    }

    // MARK: The head

    private static func read(_ text: String, by size: Int) throws(TransferError) -> (ResponseHead, rest: String)? {
        var reader = WebSocketHeadReader()
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = Array(bytes[start..<min(bytes.count, start + size)])
            let result = piece.withUnsafeBytes { buffer -> Result<(ResponseHead?, Int), TransferError> in
                var rest = buffer
                do throws(TransferError) {
                    let head = try reader.next(&rest)
                    return .success((head, rest.count))
                } catch {
                    return .failure(error)
                }
            }
            let (head, left) = try result.get()
            if let head {
                let rest = Array(bytes[(start + piece.count - left)...])
                return (head, String(decoding: rest, as: UTF8.self))
            }
        }
        return nil
    }

    @Test("a head is read from pieces of any size, after informational ones, and the bytes behind it are left")
    func reading() throws {
        let text = "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 101 Switching\r\nUpgrade: a\nB:  c \r\n\r\nrest"
        for size in 1...text.utf8.count {
            let (head, rest) = try #require(try Self.read(text, by: size))
            #expect(head.status == 101 && head.reason == "Switching" && rest == "rest")
            #expect(head.value(of: "upgrade") == "a" && head.value(of: "b") == "c" && head.value(of: "link") == nil)
        }
        #expect(try Self.read("HTTP/1.1 101\r\n", by: 3) == nil)
    }

    @Test(
        "what is no head of HTTP/1.1 is refused",
        arguments: [
            "SSH-2.0-x\r\n", "HTTP/2 101\r\n", "HTTP/1.1 9x9 a\r\n", "HTTP/1.1 +12\r\n", "\r\n",
        ])
    func invalidHeads(text: String) {
        #expect(throws: TransferError.self) { try Self.read(text, by: 1000) }
    }

    @Test("a head without an end is refused")
    func endlessHead() {
        let text = "HTTP/1.1 101 a\r\n" + String(repeating: "a: b\r\n", count: 20_000)
        #expect(throws: TransferError.self) { try Self.read(text, by: 1000) }
    }
}
