import TestSupport

@testable import Transfer

/// A server of WebSockets on loopback, whose connections run a script.
final class WebSocketServer: Sendable {
    /// A frame of the client, unmasked.
    struct Frame {
        var opcode: UInt8
        var isFinal: Bool
        var payload: [UInt8]
    }

    private let peer: TalkingPeer
    private let notes: Notes<[String]>

    var port: Int { peer.port }
    func url(_ path: String = "/", host: String = "127.0.0.1") -> String { "ws://\(host):\(port)\(path)" }
    /// The lines of the first request's head.
    var request: [String] { notes.all.first ?? [] }
    /// The number of sockets that are connected to the server.
    var connections: Int { peer.connections }

    /// - Parameters:
    ///   - fields: further lines of the response's head.
    ///   - script: the script after the opening handshake, whose response it sends itself before its first bytes.
    init(
        fields: [String] = [],
        _ script: @escaping @Sendable (borrowing StreamSocket, _ response: [UInt8]) throws -> Void
    ) throws {
        let heads = Notes<[String]>()
        peer = try TalkingPeer { socket in
            let head = try socket.readHead()
            heads.add(head)
            let key = head.first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19) ?? ""
            let lines =
                [
                    "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                    "Sec-WebSocket-Accept: " + WebSocketUpgrade.accept(for: String(key)),
                ] + fields
            try script(socket, Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        }
        notes = heads
    }

    /// Returns a server that sends each message back, in fragments of random sizes and in pieces of random sizes with a
    /// ping before each, until the client closes.
    static func echo(fields: [String] = []) throws -> WebSocketServer {
        try WebSocketServer(fields: fields) { socket, response in
            socket.send(response)
            var random = WebSocketRandom(state: 7)
            var message: (opcode: WebSocketOpcode, payload: [UInt8])?
            while let frame = try socket.readFrame() {
                switch frame.opcode {
                case 8:
                    socket.send(ServerFrame.bytes(.close, frame.payload))
                    return
                case 9: socket.send(ServerFrame.bytes(.pong, frame.payload))
                case 10: break
                default:
                    if let opcode = WebSocketOpcode(rawValue: frame.opcode), opcode != .continuation {
                        message = (opcode, [])
                    }
                    message?.payload += frame.payload
                    guard frame.isFinal, let (opcode, payload) = message else { continue }
                    let ping = ServerFrame.bytes(.ping, [UInt8(truncatingIfNeeded: payload.count)])
                    socket.send(ping + ServerFrame.fragments(opcode, payload, using: &random))
                }
            }
        }
    }
}

extension StreamSocket {
    /// Reads a frame of a client; `nil` at the end.
    borrowing func readFrame() throws -> WebSocketServer.Frame? {
        let start = try read(2)
        guard start.count == 2 else { return nil }
        var count = Int(start[1] & 0x7F)
        if count > 125 { count = try read(count == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
        guard start[1] & 0x80 != 0 else { throw Unusable(reason: "a frame without a mask") }
        let key = try read(4)
        var payload = try read(count)
        guard key.count == 4, payload.count == count else { return nil }
        payload.withUnsafeMutableBytes { payload in
            for index in 0..<count { payload[index] ^= key[index & 3] }
        }
        return WebSocketServer.Frame(opcode: start[0] & 0x0F, isFinal: start[0] & 0x80 != 0, payload: payload)
    }

    /// Reads bytes; fewer at the end.
    private borrowing func read(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let piece = try receive(atMost: min(1 << 18, count - bytes.count))
            if piece.isEmpty { break }
            bytes += piece
        }
        return bytes
    }
}
