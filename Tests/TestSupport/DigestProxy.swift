import Crypto
import Synchronization

/// A forward proxy that requires Digest authentication (RFC 7616) and verifies each response to its challenge. It tunnels
/// (CONNECT) and forwards requests to ports of this machine, one request a connection.
package final class DigestProxy: Sendable {
    package enum Algorithm: String, Sendable, CaseIterable {
        case md5 = "MD5"
        case sha256 = "SHA-256"

        fileprivate func hash(_ text: String) -> String {
            switch self {
            case .md5: hex(Insecure.MD5.hash(data: Array(text.utf8)))
            case .sha256: hex(SHA256.hash(data: Array(text.utf8)))
            }
        }
    }

    /// The user name that the proxy accepts.
    package static let user = "ann"
    /// The password that the proxy accepts.
    package static let password = "of-the-proxy"

    private final class Records: Sendable { let heads = Mutex<[[String]]>([]) }

    private let records: Records
    private let peer: TalkingPeer

    /// Starts the proxy.
    ///
    /// - Parameters:
    ///   - stale: the number of correct responses that it rejects because their nonce is too old.
    ///   - refusal: the status with which it refuses what it was asked for with correct credentials.
    package init(_ algorithm: Algorithm, stale: Int = 0, refusal: Int? = nil) throws {
        let records = Records()
        let remaining = Mutex(stale)
        self.records = records
        peer = try TalkingPeer { socket in
            // A connection stays open after a challenge.
            while true {
                let head = try socket.readHead()
                guard let first = head.first else { return }
                records.heads.withLock { $0.append(head) }
                let body = try Self.body(after: head, on: socket)
                let words = first.split(separator: " ").map(String.init)
                guard words.count == 3, let port = Self.port(words[1]) else { return }
                let field = head.first { $0.lowercased().hasPrefix("proxy-authorization: ") }?.dropFirst(21)
                guard let field, Self.isRight(String(field), words[0], words[1], algorithm) else {
                    socket.send(Self.challenge(algorithm, "n-0"))
                    continue
                }
                let isStale = remaining.withLock { remaining in
                    defer { remaining = max(0, remaining - 1) }
                    return remaining > 0
                }
                if isStale {
                    socket.send(Self.challenge(algorithm, "n-\(Int.random(in: 1...Int.max))", isStale: true))
                    continue
                }
                if let refusal {
                    let lines = ["HTTP/1.1 \(refusal) No", "Server: tinyproxy/1.11", "Content-Length: 0", "", ""]
                    socket.send(Array(lines.joined(separator: "\r\n").utf8))
                    continue
                }
                if words[0] == "CONNECT" {
                    socket.send(Array("HTTP/1.1 200 go on\r\n\r\n".utf8))
                    return try socket.relay(to: port)
                }
                let server = try StreamSocket(port: port)
                let path = words[1].dropFirst("http://".count).drop { $0 != "/" }
                let rest = head.dropFirst().filter { !$0.lowercased().hasPrefix("proxy-") }
                let lines = ["\(words[0]) \(path) HTTP/1.1"] + rest + ["Connection: close"]
                server.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
                // The server may keep its connection open.
                server.endWriting()
                socket.send(try server.readToEnd())
                return
            }
        }
    }

    package var port: Int { peer.port }
    /// The URL without a login.
    package var bareURL: String { "http://127.0.0.1:\(peer.port)" }
    /// The URL with the login that the proxy accepts.
    package var url: String { "http://\(Self.user):\(Self.password)@127.0.0.1:\(peer.port)" }
    /// The heads of the requests so far.
    package var heads: [[String]] { records.heads.withLock { $0 } }
    /// The `Proxy-Authorization` fields of the requests so far; `nil` for a request without one.
    package var credentials: [String?] {
        heads.map { head in
            head.first { $0.lowercased().hasPrefix("proxy-authorization: ") }.map { String($0.dropFirst(21)) }
        }
    }

    private static func body(after head: [String], on socket: borrowing StreamSocket) throws -> [UInt8] {
        let field = head.first { $0.lowercased().hasPrefix("content-length: ") }
        let length = field.flatMap { Int($0.dropFirst("content-length: ".count)) } ?? 0
        var body: [UInt8] = []
        while body.count < length {
            let piece = try socket.receive(atMost: length - body.count)
            if piece.isEmpty { break }
            body += piece
        }
        return body
    }

    private static func challenge(_ algorithm: Algorithm, _ nonce: String, isStale: Bool = false) -> [UInt8] {
        let stale = isStale ? ", stale=true" : ""
        let offer = "Digest realm=\"proxy\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=\(algorithm.rawValue)\(stale)"
        return Array("HTTP/1.1 407 Who\r\nProxy-Authenticate: \(offer)\r\nContent-Length: 0\r\n\r\n".utf8)
    }

    /// Returns the port of `host:port` or `http://host:port/path`.
    private static func port(_ target: String) -> Int? {
        let authority = target.hasPrefix("http://") ? target.dropFirst(7).prefix { $0 != "/" } : target[...]
        return authority.split(separator: ":").last.flatMap { Int($0) }
    }

    private static func isRight(_ field: String, _ method: String, _ target: String, _ algorithm: Algorithm) -> Bool {
        guard field.hasPrefix("Digest ") else { return false }
        var values: [String: String] = [:]
        for part in field.dropFirst("Digest ".count).split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != "\"" && $0 != " " } }
            if pair.count == 2 { values[pair[0]] = pair[1] }
        }
        guard values["username"] == user, values["uri"] == target, let nonce = values["nonce"],
            let count = values["nc"], let clientNonce = values["cnonce"], values["qop"] == "auth"
        else { return false }
        let secret = algorithm.hash("\(user):proxy:\(password)")
        let request = algorithm.hash("\(method):\(target)")
        return values["response"] == algorithm.hash("\(secret):\(nonce):\(count):\(clientNonce):auth:\(request)")
    }
}

private func hex(_ digest: some Sequence<UInt8>) -> String {
    digest.map { byte in
        let digits = String(byte, radix: 16)
        return digits.utf8.count == 1 ? "0" + digits : digits
    }.joined()
}
