import Curl
import FoundationEssentials
import HTTPTypes
import Testing

@testable import Transfer

@Suite("The state machine of a WebSocket")
struct WebSocketStateMachineTests {
    private typealias Machine = WebSocketStateMachine

    /// A machine with the frames that it has sent, and what became of its calls.
    private struct Harness {
        var machine = Machine(heldLimit: 1000, maximumMessageSize: 10_000)
        /// The frames, as `opcode:payload`, and other work by its name.
        var log: [String] = []
        var outcomes: [String] = []
        private var output: [UInt8] = []

        init(secure: Bool = false, open: Bool = true) throws {
            let url = try WebSocketURL(secure ? "wss://a.test/" : "ws://a.test/")
            machine.upgrade = try WebSocketUpgrade(
                url, fields: [:], protocols: [], nonce: Array("the sample nonce".utf8))
            machine.clock.stallTimeout = 1000
            machine.attach()
            if open {
                machine.connected()
                turn()
                receive(Self.response)
                log = []
            }
        }

        static let response = Array(
            ("HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n").utf8)

        mutating func receive(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { machine.received($0) }
            _ = machine.wantsMore()
            turn()
        }

        /// Performs the work that there is.
        ///
        /// - Parameter room: the number of bytes that the connection accepts.
        mutating func turn(room: Int = .max) {
            var room = room
            while let work = machine.nextWork(mask: { 0 }) {
                switch work {
                case .write(_, let bytes, let offset):
                    let count = min(room, bytes.count - offset)
                    room -= count
                    machine.accepted(count, of: bytes.count - offset)
                    output += bytes[offset..<offset + count]
                    machine.sent(count)
                    decode()
                case .secure: log.append("secure")
                case .closeWrite: log.append("close write")
                case .closeRead: log.append("close read")
                case .resumeReading: log.append("resume")
                case .capture: log.append("capture")
                }
            }
            for (id, outcome) in machine.removeOutcomes() {
                switch outcome {
                case .success(.text(let text)?): outcomes.append("\(id):\(text)")
                case .success(.data(let data)?): outcomes.append("\(id):\(data.count) bytes")
                case .success(nil): outcomes.append("\(id)")
                case .failure(let error): outcomes.append("\(id)!\(error.code.rawValue)")
                }
            }
        }

        private mutating func decode() {
            if output.starts(with: "GET ".utf8) {
                log.append("handshake")
                output = []
            }
            while output.count >= 6 {
                let short = Int(output[1] & 0x7F)
                let header = short < 126 ? 6 : short == 126 ? 8 : 14
                guard output.count >= header else { return }
                var count = short
                if short > 125 { count = output[2..<header - 4].reduce(0) { $0 << 8 | Int($1) } }
                guard output.count >= header + count else { return }
                let payload = output[header..<header + count]
                let fin = output[0] & 0x80 == 0 ? "…" : ""
                let text = count > 20 ? "\(count)" : String(decoding: payload, as: UTF8.self)
                let closing = output[0] == 0x88 && count >= 2
                let code = closing ? "\(Int(payload[header]) << 8 | Int(payload[header + 1]))" : text
                log.append("\(output[0] & 15):\(code)\(fin)")
                output.removeFirst(header + count)
            }
        }
    }

    @Test("TLS comes first for wss, then the handshake; calls wait for it")
    func opening() throws {
        var harness = try Harness(secure: true, open: false)
        harness.machine.addSend(1, .text, Array("a".utf8))
        harness.machine.addReceive(2)
        harness.turn()
        #expect(harness.log == [] && harness.outcomes == [])
        harness.machine.connected()
        harness.turn()
        #expect(harness.log == ["secure"])
        harness.machine.secured()
        harness.turn()
        #expect(harness.log == ["secure", "handshake"] && !harness.machine.hasConnected)
        // The first message is in the same piece as the end of the handshake.
        harness.receive(Harness.response + ServerFrame.text("hi"))
        #expect(harness.log == ["secure", "handshake", "1:a"])
        #expect(harness.outcomes == ["2:hi", "1"] && harness.machine.hasConnected)
    }

    @Test("messages are received in order; the unread ones pause reading, which goes on at half of the limit")
    func backPressure() throws {
        var harness = try Harness()
        let large = ServerFrame.bytes(.binary, [UInt8](repeating: 0, count: 600))
        harness.receive(large)
        #expect(!harness.machine.inbox.isPaused)
        harness.receive(large)
        #expect(harness.machine.inbox.isPaused && harness.log == [])
        harness.machine.addReceive(1)
        harness.turn()
        #expect(harness.log == [])
        harness.machine.addReceive(2)
        harness.turn()
        #expect(harness.log == ["resume"] && harness.outcomes == ["1:600 bytes", "2:600 bytes"])
        #expect(harness.machine.inbox.size == 0)
    }

    @Test("empty messages count too, so that they do not fill the memory")
    func emptyMessages() throws {
        var harness = try Harness()
        for _ in 0..<20 { harness.receive(ServerFrame.text("")) }
        #expect(harness.machine.inbox.isPaused)
    }

    @Test("a large message is sent in fragments, with control frames between them")
    func fragments() throws {
        var harness = try Harness()
        harness.machine.addSend(1, .binary, [UInt8](repeating: 0, count: Machine.longestFrame * 2 + 1))
        harness.machine.addSend(2, .text, Array("b".utf8))
        harness.turn(room: 1000)
        harness.machine.addPing(3)
        ServerFrame.bytes(.ping, Array("x".utf8)).withUnsafeBytes { harness.machine.received($0) }
        ServerFrame.bytes(.ping, Array("y".utf8)).withUnsafeBytes { harness.machine.received($0) }
        harness.machine.hasRoom()
        harness.turn()
        // Only the last ping is answered.
        let ping = String(decoding: Machine.payload(ofPing: 3), as: UTF8.self)
        #expect(harness.log == ["2:262144…", "10:y", "9:\(ping)", "0:262144…", "0:\0", "1:b"])
        #expect(harness.outcomes == ["1", "2"])
        harness.receive(ServerFrame.bytes(.pong, Array("unasked".utf8)))
        harness.receive(ServerFrame.bytes(.pong, Machine.payload(ofPing: 3)))
        #expect(harness.outcomes == ["1", "2", "3"])
    }

    @Test("a pong answers the pings before it")
    func pongs() throws {
        var harness = try Harness()
        for id in 1...3 { harness.machine.addPing(id) }
        harness.turn()
        harness.receive(ServerFrame.bytes(.pong, Machine.payload(ofPing: 2)))
        #expect(harness.outcomes == ["1", "2"])
    }

    @Test("the client closes: after its messages, and the server's answer ends it")
    func closing() throws {
        var harness = try Harness()
        harness.receive(ServerFrame.text("early"))
        harness.machine.addSend(1, .text, Array("a".utf8))
        harness.machine.addClose(2, WebSocketClosure(code: .goingAway).payload)
        harness.machine.addSend(3, .text, Array("late".utf8))
        harness.turn()
        #expect(harness.log == ["1:a", "8:1001"] && harness.outcomes == ["3!stream-closed", "1"])
        harness.receive(ServerFrame.text("discarded") + ServerFrame.bytes(.ping, []) + ServerFrame.close(1001, "ok"))
        #expect(harness.log == ["1:a", "8:1001", "close write", "close read"])
        for id in 4...5 { harness.machine.addReceive(id) }
        #expect(harness.machine.conclusion(nil) == nil)
        harness.machine.ended(nil)
        harness.turn()
        #expect(harness.outcomes == ["3!stream-closed", "1", "4:early", "5", "2"])
        #expect(harness.machine.closure == WebSocketClosure(code: .goingAway, reason: "ok"))
    }

    @Test("the server closes: it is answered with its code, and calls learn of it at once")
    func closedByServer() throws {
        var harness = try Harness()
        harness.machine.addReceive(1)
        harness.machine.addSend(2, .binary, [UInt8](repeating: 0, count: 500_000))
        harness.turn(room: 100)
        ServerFrame.close(4000, "why").withUnsafeBytes { harness.machine.received($0) }
        harness.turn()
        #expect(harness.outcomes == ["2!stream-closed", "1"])
        harness.machine.hasRoom()
        harness.turn()
        #expect(harness.log == ["2:262144…", "8:4000", "close write", "close read"])
        #expect(harness.machine.conclusion(TransferError(.truncated, "reset")) == nil)
        #expect(harness.machine.conclusion(.cancelled)?.code == .cancelled)
    }

    @Test("a violation is answered with a Close frame, and its error ends the calls after the messages before it")
    func violation() throws {
        var harness = try Harness()
        harness.machine.addPing(1)
        harness.turn()
        harness.log = []
        harness.receive(ServerFrame.text("good") + ServerFrame.raw(0x83, []) + ServerFrame.text("after"))
        #expect(harness.log == ["8:1002", "close write", "close read"])
        for id in 2...3 { harness.machine.addReceive(id) }
        harness.machine.addSend(4, .text, [])
        harness.turn()
        #expect(harness.outcomes == ["1!truncated", "2:good", "3!truncated", "4!truncated"])
        #expect(harness.machine.conclusion(nil)?.code == .truncated)
    }

    @Test("a connection that ends without a Close frame is a failure; before the handshake, calls go on waiting")
    func cut() throws {
        var harness = try Harness()
        harness.machine.addReceive(1)
        harness.machine.peerClosed()
        harness.turn()
        #expect(harness.outcomes == ["1!truncated"] && harness.log == ["close write", "close read"])
        var early = try Harness(open: false)
        early.machine.connected()
        early.turn()
        early.machine.addReceive(1)
        early.machine.addClose(2, [])
        early.machine.peerClosed()
        early.turn()
        #expect(early.outcomes == [] && early.machine.conclusion(nil)?.code == .cannotConnect)
        // Another attempt: the calls are carried out.
        early.log = []
        early.machine.attach()
        early.machine.connected()
        early.turn()
        early.receive(Harness.response)
        #expect(early.log == ["handshake", "8:"])
        early.receive(ServerFrame.bytes(.close, []))
        early.machine.ended(early.machine.conclusion(nil))
        early.turn()
        #expect(early.outcomes == ["1", "2"] && early.machine.closure?.code == .noStatus)
    }

    @Test("a refusal before the handshake ends the attempt, and the last error ends the calls")
    func refused() throws {
        var harness = try Harness(open: false)
        harness.machine.connected()
        harness.machine.addSend(1, .text, [])
        harness.turn()
        harness.receive(Array("HTTP/1.1 403 No\r\n\r\n".utf8))
        #expect(harness.outcomes == [] && harness.log == ["handshake", "close write", "close read"])
        let error = try #require(harness.machine.conclusion(.cancelled))
        #expect(error.httpStatus == 403)
        harness.machine.ended(error)
        harness.machine.addReceive(2)
        harness.turn()
        #expect(harness.outcomes == ["1!http", "2!http"])
    }

    @Test("a call is withdrawn unless a part of its message was sent")
    func withdrawal() throws {
        var harness = try Harness()
        harness.machine.addSend(1, .binary, [UInt8](repeating: 0, count: 1000))
        harness.machine.addSend(2, .text, [])
        harness.machine.addReceive(3)
        harness.machine.addPing(5)
        harness.machine.addClose(4, [])
        harness.turn(room: 20)
        let withdrawn = [2, 3, 4, 5, 9, 1].map { harness.machine.withdraw($0) }
        #expect(withdrawn == [true, true, true, true, true, false])
        harness.turn()
        #expect(harness.outcomes == [2, 3, 4, 5].map { "\($0)!cancelled" })
    }

    @Test("while a call waits, silence leads to a ping, and more of it to an error; an answer begins anew")
    func silence() throws {
        func moment(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }
        var harness = try Harness()
        #expect(harness.machine.beginTurn(moment(0)) == nil)
        harness.machine.addReceive(1)
        #expect(harness.machine.beginTurn(moment(5_000)) == moment(5_500))
        #expect(harness.machine.expire(at: moment(5_499)) == nil)
        harness.turn()
        #expect(harness.log == [])
        #expect(harness.machine.expire(at: moment(5_500)) == nil)
        harness.turn()
        #expect(harness.log == ["9:"])
        // The ping itself is no traffic.
        #expect(harness.machine.beginTurn(moment(5_600)) == moment(6_000))
        harness.receive(ServerFrame.bytes(.pong, []))
        #expect(harness.machine.beginTurn(moment(5_700)) == moment(6_200))
        #expect(harness.machine.expire(at: moment(6_200)) == nil)
        harness.turn()
        #expect(harness.machine.expire(at: moment(6_700))?.code == .stalled)
        // Suspended, no time runs.
        harness.machine.suspend()
        #expect(harness.machine.beginTurn(moment(9_000)) == nil)
        #expect(harness.machine.expire(at: moment(9_000)) == nil)
        harness.machine.resume()
        #expect(harness.machine.beginTurn(moment(9_000)) == moment(9_500))
    }

    @Test("a closing handshake has a time limit")
    func closeTimeout() throws {
        var harness = try Harness()
        harness.machine.addClose(1, [])
        harness.turn()
        let now = MonotonicTime(nanoseconds: 1_000_000)
        let turn = harness.machine.beginTurn(now)
        let due = try #require(turn)
        #expect(due == now.advanced(milliseconds: WebSocketClock.closeTimeout))
        let error = harness.machine.expire(at: due)
        #expect(error?.code == .timedOut)
        harness.machine.ended(harness.machine.conclusion(error))
        harness.turn()
        #expect(harness.outcomes == ["1!timeout"])
    }

    @Test("in any order of events each call returns once, and nothing follows a Close frame", arguments: 0..<300)
    func randomEvents(seed: Int) throws {
        var random = WebSocketRandom(state: UInt64(seed))
        var harness = try Harness(open: seed.isMultiple(of: 3))
        var calls = 0
        let frames = [
            ServerFrame.text("t"), ServerFrame.bytes(.ping, [1]), ServerFrame.bytes(.pong, [2]),
            ServerFrame.close(1000),
            ServerFrame.bytes(.binary, isFinal: false, [1]), ServerFrame.bytes(.continuation, []), Harness.response,
            ServerFrame.raw(0x85, []), [0x82], [0x7E, 0, 0x80],
        ]
        for _ in 0..<Int.random(in: 5...60, using: &random) {
            calls += 1
            switch Int.random(in: 0..<16, using: &random) {
            case 0: harness.machine.addReceive(calls)
            case 1:
                let size = [0, 10, 300_000].randomElement(using: &random) ?? 0
                harness.machine.addSend(calls, .binary, [UInt8](repeating: 0, count: size))
            case 2: harness.machine.addPing(calls)
            case 3: harness.machine.addClose(calls, [3, 232])
            default:
                calls -= 1
                switch Int.random(in: 0..<12, using: &random) {
                case 0: harness.machine.connected()
                case 1: harness.machine.suspend()
                case 2, 3: harness.machine.resume()
                case 4: harness.machine.peerClosed()
                case 5: harness.machine.hasRoom()
                case 6: _ = harness.machine.withdraw(Int.random(in: 0...max(1, calls), using: &random))
                default:
                    let frame = frames.randomElement(using: &random) ?? []
                    frame.withUnsafeBytes { harness.machine.received($0) }
                    _ = harness.machine.wantsMore()
                }
            }
            harness.turn(room: [0, 3, 1000, .max].randomElement(using: &random) ?? 0)
        }
        harness.machine.ended(harness.machine.conclusion(seed.isMultiple(of: 2) ? .cancelled : nil))
        harness.turn()
        let ids = harness.outcomes.compactMap { Int($0.prefix { $0.isNumber }) }
        #expect(ids.sorted() == Array(1..<(calls + 1)))
        if let close = harness.log.firstIndex(where: { $0.hasPrefix("8:") }) {
            #expect(harness.log[(close + 1)...].allSatisfy { !$0.contains(":") })
        }
    }
}
