import ControlProtocol
import Glibc
import Synchronization
import TaskModel
import Testing

@testable import ControlServer

@Suite("One connection, and one beside another")
struct ConnectionHandlerTests {
    @Test("requests of one connection are carried out and answered in order, however they are pipelined")
    func pipelining() async throws {
        let running = Mutex((now: 0, most: 0))
        let handler = ScriptedHandler(commands: { command, _ in
            running.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            await Task.yield()
            running.withLock { $0.now -= 1 }
            guard case .taskGet(let parameters) = command else { return .success(Acknowledgement()) }
            return .success(parameters.id)
        })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            let lines = (0..<2000).map {
                #"{"jsonrpc":"2.0","id":\#($0),"method":"task.get","params":{"id":\#($0)}}"# + "\n"
            }
            async let sent: Void = client.send(lines.joined())
            try await sent
            for number in 0..<2000 {
                try #require(
                    try await client.line() == #"{"id":\#(number),"jsonrpc":"2.0","result":\#(number)}"#)
            }
            #expect(running.withLock { $0.most } == 1)
        }
    }

    @Test("results at hand are sent in order among others, however they are pipelined")
    func resultsAtHand() async throws {
        let handler = ScriptedHandler(
            commands: { command, _ in
                guard case .taskGet(let parameters) = command else { return .success(Acknowledgement()) }
                return .success(parameters.id)
            },
            resultsAtHand: { command, _ in
                guard case .taskGet(let parameters) = command, parameters.id.rawValue % 50 != 7 else { return nil }
                return try? EncodedResult(parameters.id)
            })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            let lines = (0..<2000).map {
                #"{"jsonrpc":"2.0","id":\#($0),"method":"task.get","params":{"id":\#($0)}}"# + "\n"
            }
            try await client.send(lines.joined())
            for number in 0..<2000 {
                try #require(
                    try await client.line() == #"{"id":\#(number),"jsonrpc":"2.0","result":\#(number)}"#)
            }
        }
    }

    @Test("a slow request delays its own connection and no other")
    func slowHandler() async throws {
        let gate = Gate()
        let handler = ScriptedHandler(commands: { command, _ in
            if case .queueList = command { await gate.wait() }
            return .success(Acknowledgement())
        })
        try await withServer(handler) { _, path in
            let slow = try TestClient(connectingTo: path)
            try await slow.send(#"{"jsonrpc":"2.0","id":1,"method":"queue.list"}"# + "\n" + request(2) + "\n")
            let quick = try TestClient(connectingTo: path)
            for number in 0..<100 { #expect(try await quick.ask(request(number)) == acknowledgement(number)) }
            await gate.open()
            #expect(try await slow.line() == acknowledgement(1))
            #expect(try await slow.line() == acknowledgement(2))
        }
    }

    @Test("while a request is under way, the server reads only so much ahead")
    func readsNoFurther() async throws {
        let gate = Gate()
        let handler = ScriptedHandler(commands: { _, _ in
            await gate.wait()
            return .success(Acknowledgement())
        })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(request(0) + "\n")
            // Sends until no more bytes are accepted: the socket buffers are full and the server has stopped reading.
            let line = Array((request(1) + "\n").utf8)
            let block = [[UInt8]](repeating: line, count: 100).flatMap { $0 }
            var sent = 0
            while true {
                var room = pollfd(fd: client.descriptor, events: Int16(POLLOUT), revents: 0)
                guard poll(&room, 1, 200) == 1, sent < 64 << 20 else { break }
                let count = Glibc.send(client.descriptor, block, block.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { break }
                sent += count
            }
            #expect(sent < 4 << 20)
            await gate.open()
            #expect(try await client.line() == acknowledgement(0))
            #expect(try await client.line() == acknowledgement(1))
        }
    }

    @Test("empty lines and CR before LF are tolerated")
    func blanks() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send("\n\r\n  \n" + request(1) + "\r\n\n" + request(2) + "\n")
            #expect(try await client.line() == acknowledgement(1))
            #expect(try await client.line() == acknowledgement(2))
        }
    }

    @Test("garbage is answered, and the connection goes on")
    func garbage() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send([0xFF, 0x00, 0x80, 0x0A])
            #expect(try await client.line()?.contains(#""code":-32700"#) == true)
            let deep = [UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)
            try await client.send(deep + [0x0A])
            #expect(try await client.line()?.contains(#""code":-32600"#) == true)
            #expect(try await client.ask(request(1)) == acknowledgement(1))
        }
    }

    @Test(
        "what a browser sends is refused before its body, a request, is carried out (A13)",
        arguments: [
            "POST / HTTP/1.1", "GET /a b HTTP/1.0\r", "PRI * HTTP/2.0\r",
            "X" + String(repeating: "y", count: 5_000) + " HTTP/1.1",
        ])
    func browser(line: String) async throws {
        let carriedOut = Mutex(0)
        let handler = ScriptedHandler(commands: { _, _ in
            carriedOut.withLock { $0 += 1 }
            return .success(Acknowledgement())
        })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(Array("\(line)\nHost: localhost\r\n\r\n\(request(1))\n".utf8))
            let answer = try await client.line()
            #expect(answer?.contains("-32600") == true && answer?.contains("not HTTP") == true, "\(answer ?? "")")
            #expect(try await client.line() == nil)
            // A server that closed late would have carried out the body by now.
            let other = try TestClient(connectingTo: path)
            #expect(try await other.ask(request(2)) == acknowledgement(2))
            #expect(carriedOut.withLock { $0 } == 1)
        }
    }

    @Test("text with the name of HTTP elsewhere is answered, and the connection goes on")
    func noBrowser() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            for line in ["http/1.1", "HTTP", "a HTTP/1.1", "\"POST HTTP/1.1", "X"] {
                try await client.send(Array("\(line)\n".utf8))
                #expect(try await client.line()?.contains(#""code":-32700"#) == true, "\(line)")
            }
            #expect(try await client.ask(request(1)) == acknowledgement(1))
        }
    }

    @Test("a line of 1 MiB is taken; a longer one gets -32600 and the end (A16)")
    func giantLine() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            let text = Array(request(1).utf8)
            let blanks = [UInt8](repeating: UInt8(ascii: " "), count: MessageLimits.lineLength - text.count)
            try await client.send(text + blanks + [0x0A])
            #expect(try await client.line() == acknowledgement(1))
            // The server closes the connection halfway; its response can still be read.
            try? await client.send([UInt8](repeating: UInt8(ascii: "x"), count: 8 << 20))
            #expect(
                try await client.line()
                    == #"{"error":{"code":-32600,"data":{"code":"invalid"},"#
                    + #""message":"a line is longer than 1048576 bytes"},"id":null,"jsonrpc":"2.0"}"#)
            #expect(try await client.line() == nil)
        }
    }

    @Test("a line that is a little too long is refused too when it follows a request under way")
    func slightlyTooLongLine() async throws {
        let gate = Gate()
        let handler = ScriptedHandler(commands: { _, _ in
            await gate.wait()
            return .success(Acknowledgement())
        })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            let line = [UInt8](repeating: UInt8(ascii: "x"), count: MessageLimits.lineLength + 1)
            try await client.send(Array((request(1) + "\n").utf8) + line + [0x0A])
            await gate.open()
            #expect(try await client.line() == acknowledgement(1))
            #expect(try await client.line()?.contains("a line is longer than 1048576 bytes") == true)
            #expect(try await client.line() == nil)
        }
    }

    @Test("half a line is given up after its time; whole lines and silence are not (A15)")
    func halfLine() async throws {
        try await withServer(limits: { $0.halfLine = .milliseconds(200) }) { _, path in
            let silent = try TestClient(connectingTo: path)
            let steady = try TestClient(connectingTo: path)
            #expect(try await steady.ask(request(1)) == acknowledgement(1))
            let stuck = try TestClient(connectingTo: path)
            try await stuck.send(request(1) + "\n{")
            #expect(try await stuck.line() == acknowledgement(1))
            #expect(try await stuck.line() == nil)
            #expect(try await steady.ask(request(2)) == acknowledgement(2))
            #expect(try await silent.ask(request(3)) == acknowledgement(3))
        }
    }

    @Test("a client that has said all it wants still gets its answers, and then the end")
    func halfClosed() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(request(1) + "\n" + request(2) + "\n")
            client.shutdownWriting()
            #expect(try await client.line() == acknowledgement(1))
            #expect(try await client.line() == acknowledgement(2))
            #expect(try await client.line() == nil)
        }
    }

    @Test("a client that asks and asks and never reads is given up, and its questions are not all carried out")
    func neverReads() async throws {
        let calls = Mutex(0)
        let page = [String](repeating: String(repeating: "x", count: 1000), count: 100)
        let handler = ScriptedHandler(commands: { _, _ in
            calls.withLock { $0 += 1 }
            return .success(page)
        })
        try await withServer(handler, limits: { $0.stalled = .milliseconds(200) }) { _, path in
            let client = try TestClient(connectingTo: path)
            let lines = [String](repeating: request(1) + "\n", count: 50_000).joined()
            // Returns only because the server closes the connection: the buffers are smaller than `lines`.
            let failure = await #expect(throws: TestClient.Failure.self) { try await client.send(lines) }
            #expect(failure.map { [EPIPE, ECONNRESET].contains($0.errno) } == true)
            #expect(calls.withLock { $0 } < 100)
        }
    }

    @Test("descriptors that a client passes are not kept (A18)")
    func passedDescriptors() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            let (output, input) = try makePipe()
            defer { Glibc.close(output) }
            for number in 0..<4 {
                try client.send(Array((request(number) + "\n").utf8), passing: input, count: 253)
                #expect(try await client.line() == acknowledgement(number))
            }
            Glibc.close(input)
            // If the server had kept a single descriptor, the pipe would not report a hang-up. (A child process that
            // another test starts at this moment may hold one briefly.)
            var readable = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            let patience = ContinuousClock.now + .seconds(20)
            while poll(&readable, 1, 0) == 0, ContinuousClock.now < patience { await Task.yield() }
            #expect(readable.revents & Int16(POLLHUP) != 0)
        }
    }
}
