import ControlProtocol
import Synchronization
import TaskModel
import Testing

@testable import ControlServer

@Suite("Clients that leave answers unread, or lines unfinished", .timeLimit(.minutes(1)))
struct BoundedMemoryTests {
    private static let list = #"{"jsonrpc":"2.0","id":1,"method":"queue.list"}"#

    @Test("answers that nobody reads stop a user's other requests, which go on as soon as answers are read")
    func unreadAnswers() async throws {
        let calls = Mutex(0)
        let page = [String](repeating: String(repeating: "x", count: 1000), count: 480)
        let handler = ScriptedHandler(commands: { command, _ in
            guard case .queueList = command else { return .success(Acknowledgement()) }
            calls.withLock { $0 += 1 }
            return .success(page)
        })
        // Each response is 480 kB, more than the socket buffers hold, in buffers of 512 KiB: two or three may be
        // unread.
        try await withServer(
            handler,
            limits: {
                $0.memoryPerUser = 3 << 19
                $0.memory = 8 << 20
                $0.memoryReserve = 1 << 20
            }
        ) { _, path in
            let clients = try (0..<20).map { _ in try TestClient(connectingTo: path) }
            for client in clients { try await client.send(Self.list + "\n") }
            // Quick requests still have room.
            let other = try TestClient(connectingTo: path)
            for number in 0..<50 { #expect(try await other.ask(request(number)) == acknowledgement(number)) }
            #expect(calls.withLock { $0 } <= 3)
            // The server chooses the order of the responses.
            try await withThrowingTaskGroup { readers in
                for client in clients { readers.addTask { try await client.line()?.utf8.count ?? 0 } }
                for try await length in readers { #expect(length > 480_000) }
            }
            #expect(calls.withLock { $0 } == 20)
        }
    }

    @Test("an answer that is left unread is given up after its time, however little it is")
    func stalled() async throws {
        let page = String(repeating: "x", count: 60_000)
        let handler = ScriptedHandler(commands: { _, _ in .success(page) })
        try await withServer(handler, limits: { $0.stalled = .milliseconds(100) }) { _, path in
            let client = try TestClient(connectingTo: path)
            // More than the socket takes, but less than the channel's limit for unread bytes.
            await #expect(throws: TestClient.Failure.self) {
                for number in 0..<8 { try await client.send(request(number) + "\n") }
                while true { try await client.send("\n") }
            }
        }
    }

    @Test("a long line waits until another one has come whole, and short ones do not")
    func longLines() async throws {
        try await withServer(limits: { $0.longLinesPerUser = 1 }) { _, path in
            let long = request(1) + String(repeating: " ", count: 100_000)
            let first = try TestClient(connectingTo: path)
            try await first.send(String(long.dropLast(10)))
            let second = try TestClient(connectingTo: path)
            try await second.send(long + "\n")
            let third = try TestClient(connectingTo: path)
            for number in 0..<50 { #expect(try await third.ask(request(number)) == acknowledgement(number)) }
            try await first.send("\n")
            #expect(try await first.line() == acknowledgement(1))
            #expect(try await second.line() == acknowledgement(1))
        }
    }

    @Test("a long line that never ends gives way to others after its time")
    func endlessLine() async throws {
        try await withServer(
            limits: {
                $0.longLinesPerUser = 1
                $0.halfLine = .milliseconds(100)
            }
        ) { _, path in
            let endless = try TestClient(connectingTo: path)
            try await endless.send(String(repeating: " ", count: 100_000))
            let long = request(1) + String(repeating: " ", count: 100_000)
            let clients = try (0..<3).map { _ in try TestClient(connectingTo: path) }
            for client in clients { try await client.send(long + "\n") }
            for client in clients { #expect(try await client.line() == acknowledgement(1)) }
            #expect(try await endless.line() == nil)
        }
    }

    @Test("what a client sends before it closes its end is answered within the user's room, and no further")
    func surplus() async throws {
        let gate = Gate()
        let handler = ScriptedHandler(commands: { command, _ in
            if case .queueList = command { await gate.wait() }
            return .success(Acknowledgement())
        })
        try await withServer(
            handler,
            limits: { $0.surplusPerUser = 30_000 }
        ) { _, path in
            let lines = Self.list + "\n" + (0..<200).map { request($0) + "\n" }.joined()
            let small = try TestClient(connectingTo: path)
            try await small.send(lines)
            small.shutdownWriting()
            let large = try TestClient(connectingTo: path)
            // More than the user's `surplusPerUser`, but no more than the kernel accepts while the server does not
            // read.
            try await large.send(Self.list + "\n" + String(repeating: request(1) + "\n", count: 1_000))
            large.shutdownWriting()
            #expect(try await large.line() == nil)
            await gate.open()
            #expect(try await small.line() == acknowledgement(1))
            for number in 0..<200 { #expect(try await small.line() == acknowledgement(number)) }
            #expect(try await small.line() == nil)
        }
    }

    @Test("a line of more values than are decoded is refused, and costs no more than its bytes")
    func tooManyValues() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            let values = String(repeating: "0,", count: MessageLimits.values) + "0"
            let answer = try await client.ask(
                #"{"jsonrpc":"2.0","id":1,"method":"task.pause","params":{"ids":[\#(values)]}}"#)
            #expect(answer?.contains(#""code":-32600"#) == true, "\(answer ?? "")")
            let urls = [String](repeating: #""x""#, count: 10_001).joined(separator: ",")
            let added = try await client.ask(
                #"{"jsonrpc":"2.0","id":1,"method":"task.add","params":{"tasks":[\#(urls)]}}"#)
            #expect(added?.contains("contains more than 10000 tasks") == true, "\(added ?? "")")
        }
    }
}
