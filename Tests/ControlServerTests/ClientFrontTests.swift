import CLinux
import Curl
import Glibc
import Synchronization
import Testing

@testable import ControlServer

@Suite("Between clients and the server", .serialized, .timeLimit(.minutes(2)))
struct ClientFrontTests {
    /// The SO_LINGER time in seconds. No test waits that long.
    private static let linger: Int32 = 1_000_000

    enum Place: CaseIterable {
        case withRequest, beforeRequest, urgent, unread, unreadUrgent, beforeTheEnd, refused
    }

    @Test(
        "a socket that cannot be closed, sent along with a request or left unread, keeps nobody waiting",
        arguments: Place.allCases)
    func lingering(_ place: Place) async throws {
        let isPermitted = place != .refused
        let began = ContinuousClock.now
        try await withServer(authorize: { _ in isPermitted }) { _, path in
            var sockets: [LingeringSocket] = []
            let flags = place == .urgent || place == .unreadUrgent ? Int32(MSG_OOB) : 0
            func pass(_ text: String, on client: TestClient) throws {
                let socket = try LingeringSocket(seconds: Self.linger)
                try client.send(Array(text.utf8), passing: socket.descriptor, count: 1, flags: flags)
                socket.giveUp()
                sockets.append(socket)
            }
            for number in 0..<3 {
                let client = try TestClient(connectingTo: path)
                switch place {
                case .withRequest:
                    try pass(request(number) + "\n", on: client)
                    #expect(try await client.line() == acknowledgement(number))
                case .beforeRequest, .urgent:
                    try pass(" ", on: client)
                    #expect(try await client.ask(request(number)) == acknowledgement(number))
                case .unread, .unreadUrgent, .refused:
                    try? pass(" ", on: client)
                    try? pass(" ", on: client)
                case .beforeTheEnd:
                    #expect(try await client.ask(request(number)) == acknowledgement(number))
                    try pass(" ", on: client)
                    client.leave()
                }
                if isPermitted {
                    let other = try TestClient(connectingTo: path)
                    #expect(try await other.ask(request(9)) == acknowledgement(9))
                }
            }
            #expect(!sockets.isEmpty || !isPermitted)
        }
        #expect(ContinuousClock.now - began < .seconds(15))
    }

    @Test("bytes around files that nobody asked for come to the server, in their order and once")
    func bytesAround() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            let (output, input) = try makePipe()
            defer {
                close(output)
                close(input)
            }
            let text = Array((request(1) + "\n" + request(2) + "\n").utf8)
            for (start, middle, end) in [(0, 7, 9), (9, 10, 40), (40, 60, text.count)] {
                try client.send(Array(text[start..<middle]), passing: input, count: 2)
                try await client.send(Array(text[middle..<end]))
            }
            #expect(try await client.line() == acknowledgement(1))
            #expect(try await client.line() == acknowledgement(2))
        }
    }

    @Test("a client that sends files again and again is told why it is heard no more, and others go on")
    func tooMany() async throws {
        try await withServer { _, path in
            let client = try TestClient(connectingTo: path)
            let (output, input) = try makePipe()
            defer {
                close(output)
                close(input)
            }
            for _ in 0..<20 { try? client.send([0x20], passing: input, count: 1) }
            let line = try await client.line()
            #expect(
                line?.contains("open files may be passed only after the response to source.receive") == true,
                "\(line ?? "-")")
            #expect(try await client.line() == nil)
            #expect(try await TestClient(connectingTo: path).ask(request(1)) == acknowledgement(1))
        }
    }

    @Test("what the server wrote before it closed comes to a client that reads late")
    func lateReader() async throws {
        let answer = String(repeating: "x", count: 200_000)
        try await withServer(ScriptedHandler(commands: { _, _ in .success(answer) })) { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(request(1) + "\n" + request(2) + "\n")
            client.shutdownWriting()
            try await Task.sleep(for: .milliseconds(200))
            for number in 1...2 {
                let expected = #"{"id":\#(number),"jsonrpc":"2.0","result":"\#(answer)"}"#
                #expect(try await client.line() == expected)
            }
            #expect(try await client.line() == nil)
        }
    }

    @Test("whoever is given a connection finds nothing there that the server has read")
    func held() async throws {
        let (found, continuation) = AsyncStream<String>.makeStream()
        try await withFront { arrival in
            _ = SystemThread.start(name: "test-server") {
                var byte: UInt8 = 0
                // Reads as soon as bytes arrive, while the front may still be reading from the client.
                while read(arrival.descriptor, &byte, 1) < 0 {}
                arrival.link.hold { connection in
                    var waiting: UInt8 = 0
                    let answer = withUnsafeMutableBytes(of: &waiting) { connection.peek(into: $0) }
                    continuation.yield("\(answer)")
                    close(arrival.descriptor)
                }
            }
        } _: { path, _ in
            var iterator = found.makeAsyncIterator()
            for _ in 0..<300 {
                let client = try TestClient(connectingTo: path)
                try await client.send("x")
                #expect(await iterator.next() == "nothing")
            }
        }
    }

    @Test("what came with dropped files reaches the server, though it held the client meanwhile")
    func heldWhileDropping() async throws {
        let (found, continuation) = AsyncStream<Int>.makeStream()
        try await withFront { arrival in
            arrival.link.hold { _ in arrival.link.resume() }
            _ = SystemThread.start(name: "test-server") {
                var count = 0
                var bytes = [UInt8](repeating: 0, count: 16)
                var entry = pollfd(fd: arrival.descriptor, events: Int16(POLLIN), revents: 0)
                while count < 2, poll(&entry, 1, 5_000) == 1 {
                    count += max(0, read(arrival.descriptor, &bytes, bytes.count))
                }
                close(arrival.descriptor)
                continuation.yield(count)
            }
        } _: { path, _ in
            let (output, input) = try makePipe()
            defer {
                close(output)
                close(input)
            }
            var iterator = found.makeAsyncIterator()
            for _ in 0..<60 {
                let client = try TestClient(connectingTo: path)
                try client.send([0x20], passing: input, count: 1)
                try await client.send("x")
                #expect(await iterator.next() == 2)
                // The pause keeps to the rate limit of one user.
                try await Task.sleep(for: .milliseconds(35))
            }
        }
    }

    @Test("a client whose files were refused before the server knew it is told, and once")
    func refusedEarly() async throws {
        let (told, continuation) = AsyncStream<Int>.makeStream()
        try await withFront { arrival in
            arrival.link.filesAreRefused()
            arrival.link.whenFilesAreRefused { continuation.yield(1) }
            arrival.link.whenFilesAreRefused(nil)
            close(arrival.descriptor)
            continuation.finish()
        } _: { path, _ in
            _ = try TestClient(connectingTo: path)
            var count = 0
            for await one in told { count += one }
            #expect(count == 1)
        }
    }

    @Test("no order is left, however many come while the front is busy with others")
    func orders() async throws {
        try await withFront {
            close($0.descriptor)
        } _: { _, front in
            await withTaskGroup { group in
                for _ in 0..<2 {
                    group.addTask {
                        for _ in 0..<20_000 {
                            await withCheckedContinuation { done in front.order(.hold(0) { done.resume() }) }
                        }
                    }
                }
            }
        }
    }

    private func withFront(
        reserve: Int = 8, accepting: @escaping @Sendable (Int32) -> Int32 = linux_accept,
        starved: @escaping @Sendable () -> Void = {}, arrived: @escaping @Sendable (ClientFront.Arrival) -> Void,
        _ body: (_ path: String, _ front: ClientFront) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/s"
            let socket = try ListeningSocket(making: ListeningSocketPath(path: path, replacesStale: false))
            try socket.listen()
            let (told, continuation) = AsyncStream<Void>.makeStream()
            let front = try ClientFront(
                sockets: [socket], limits: ConnectionLimits(), reserve: reserve, acceptOne: accepting,
                arrived: { continuation.yield() }, starved: starved)
            let server = Task {
                for await _ in told {
                    while case (let taken, let isEmpty) = front.dequeueArrivals() {
                        taken.forEach(arrived)
                        if isEmpty { break }
                    }
                }
            }
            defer { server.cancel() }
            do {
                try await body(path, front)
            } catch {
                await front.stop()
                throw error
            }
            await front.stop()
        }
    }

    // MARK: - Without descriptors

    /// A substitute for accept(2) that first returns a given sequence of errors.
    private final class Accepting: Sendable {
        private let state: Mutex<(errors: [Int32], calls: Int)>

        init(_ errors: [Int32]) { state = Mutex((errors, 0)) }

        var calls: Int { state.withLock { $0.calls } }

        func callAsFunction(_ socket: Int32) -> Int32 {
            let error = state.withLock { state -> Int32? in
                state.calls += 1
                return state.errors.isEmpty ? nil : state.errors.removeFirst()
            }
            guard let error else { return accept(socket, nil, nil) }
            errno = error
            return -1
        }
    }

    /// - Returns: the time until the first connection arrived, the number of accept calls, and how often room was asked
    ///   for.
    private func arrival(
        after errors: [Int32], reserve: Int
    ) async throws -> (time: Duration, calls: Int, starved: Int) {
        let starved = Mutex(0)
        let accepting = Accepting(errors)
        let (arrivals, continuation) = AsyncStream<Void>.makeStream()
        var time = Duration.zero
        try await withFront(
            reserve: reserve, accepting: { accepting($0) }, starved: { starved.withLock { $0 += 1 } }
        ) {
            close($0.descriptor)
            continuation.yield()
        } _: { path, _ in
            let began = ContinuousClock.now
            let client = try TestClient(connectingTo: path)
            var iterator = arrivals.makeAsyncIterator()
            await iterator.next()
            time = ContinuousClock.now - began
            #expect(try await client.line() == nil)
        }
        return (time, accepting.calls, starved.withLock { $0 })
    }

    @Test("F18: with nothing in reserve accepting pauses, and goes on by itself", arguments: [EMFILE, ENFILE, ENOBUFS])
    func pauses(_ number: Int32) async throws {
        let (time, calls, starved) = try await arrival(after: [number, number], reserve: 0)
        #expect(time >= .milliseconds(195))
        #expect(calls <= 4)
        #expect(starved == 2)
    }

    @Test("A19: as long as there is a reserve accepting does not pause")
    func usesReserve() async throws {
        let (_, calls, starved) = try await arrival(after: [EMFILE, EMFILE, ECONNABORTED], reserve: 2)
        #expect(calls <= 5)
        #expect(starved == 0)
        let (time, _, _) = try await arrival(after: [EMFILE, EMFILE, EMFILE], reserve: 2)
        #expect(time >= .milliseconds(95))
    }
}
