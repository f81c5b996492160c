import Curl
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Stream requests")
struct StreamRequestTests {
    private let manager: SessionManager

    init() throws { manager = try SessionManager(configuration: .test()) }

    @Test("a stream is asked for, read, written and closed, and its handlers run once, in their order")
    func whole() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let notes = Notes<Int>()
        let request = manager.stream(host: "127.0.0.1", port: peer.port)
        request.response(queue: .inline) { response in notes.add(response.error == nil ? 1 : -1) }
        request.response(queue: .inline) { _ in notes.add(2) }
        try await request.write(Array("hello".utf8))
        #expect(try await request.readData(ofMinLength: 5).data == Array("hello".utf8))
        #expect(notes.all.isEmpty)
        request.closeWrite()
        let outcome = await request.outcome
        #expect(outcome.error == nil)
        #expect(outcome.metrics.exchanges.count == 1)
        #expect(notes.all == [1, 2])
        request.response(queue: .inline) { _ in notes.add(3) }
        // The thread that runs the earlier handlers may run this one too.
        try await eventually(that: "the late one has run") { notes.all == [1, 2, 3] }
        #expect(request.description == "tcp://127.0.0.1:\(peer.port)")
        #expect(request.debugDescription == request.description)
        #expect(manager.delegate.requestCount == 0)
        #expect(peer.connections == 0)
    }

    @Test("what is asked for does not start a request that is to be started by hand")
    func byHand() async throws {
        let manager = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let peer = try TalkingPeer { try $0.echo() }
        let request = manager.stream(host: "127.0.0.1", port: peer.port)
        async let written: Void = request.write([1])
        async let read = request.readData()
        try await Task.sleep(for: .milliseconds(50))
        #expect(request.task == nil && peer.connections == 0)
        request.resume()
        try await written
        #expect(try await read.data == [1])
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
    }

    @Test("a URL that is none arrives through the handlers and answers every call")
    func failure() async throws {
        for request in [
            manager.stream(host: "", port: 1), manager.stream(host: "a b", port: 1), manager.stream(host: "a", port: 0),
            manager.stream("tcp://a"),
        ] {
            #expect(
                await error { () async throws(TransferError) in _ = try await request.readData() }?.code
                    == .invalidRequest)
            #expect(await request.outcome.error?.code == .invalidRequest)
            #expect(
                await error { () async throws(TransferError) in try await request.write([1]) }?.code == .invalidRequest)
        }
        #expect(manager.delegate.requestCount == 0)
    }

    // MARK: Adapter and retrier

    private final class Redirector: RequestAdapter {
        let asked = Notes<String>()
        private let change: @Sendable (inout TransferRequest, Int) throws(TransferError) -> Void

        init(_ change: @escaping @Sendable (inout TransferRequest, Int) throws(TransferError) -> Void) {
            self.change = change
        }

        func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
            asked.add(request.url)
            var request = request
            try change(&request, asked.all.count)
            await Task.yield()
            return request
        }
    }

    @Test("M4: the adapter is asked for streams too: host, port and proxy are those it names")
    func adapter() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let proxy = try await SOCKSProxy()
        let (port, proxyURL) = (peer.port, proxy.url())
        let adapter = Redirector { (request: inout TransferRequest, _) throws(TransferError) in
            request.url = "tcp://127.0.0.1:\(port)"
            request.proxy = proxyURL
        }
        manager.adapter = adapter
        let request = manager.stream(host: "elsewhere.test", port: 1)
        try await request.write([1])
        #expect(try await request.readData().data == [1])
        #expect(adapter.asked.all == ["tcp://elsewhere.test:1"])
        #expect(proxy.targets == ["127.0.0.1:\(port)"])
        request.cancel()
        _ = await request.outcome
        #expect(request.original?.url == "tcp://elsewhere.test:1")
        #expect(request.request?.url == "tcp://127.0.0.1:\(port)")
    }

    @Test(
        "M4: an attempt that did not connect is followed by another, adapted anew, and what was asked for waits for it")
    func retry() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let (port, nobody) = (peer.port, try FreePort.next())
        let adapter = Redirector { (request: inout TransferRequest, count: Int) throws(TransferError) in
            if count == 1 { throw TransferError(.internal, "no token") }
            request.url = "tcp://127.0.0.1:\(count < 4 ? nobody : port)"
        }
        let retrier = CountingRetrier(limit: 9)
        manager.adapter = adapter
        manager.retrier = retrier
        let request = manager.stream(host: "127.0.0.1", port: nobody)
        async let read = request.readData()
        try await request.write(Array("late".utf8))
        #expect(try await read.data == Array("late".utf8))
        #expect(request.retryCount == 3)
        #expect(retrier.asked.withLock { $0.map(\.code) } == [.internal, .cannotConnect, .cannotConnect])
        request.closeWrite()
        let outcome = await request.outcome
        #expect(outcome.error == nil)
        #expect(outcome.metrics.exchanges.count == 3)
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("once connected, a stream that breaks is not made again")
    func noRetry() async throws {
        let peer = try TalkingPeer { socket in
            _ = try socket.receive(atMost: 1)
            socket.resetOnClose()
        }
        let retrier = CountingRetrier(limit: 9)
        manager.retrier = retrier
        let request = manager.stream(host: "127.0.0.1", port: peer.port)
        try await request.write([1])
        #expect(await error { () async throws(TransferError) in _ = try await request.readData() }?.code == .truncated)
        #expect(await request.outcome.error?.code == .truncated)
        #expect(retrier.asked.withLock { $0.isEmpty })
    }

    @Test("a retrier that has had enough leaves the last failure, to every call and to the handlers")
    func retrierEnds() async throws {
        manager.retrier = CountingRetrier(limit: 2)
        let request = manager.stream(host: "127.0.0.1", port: try FreePort.next())
        async let write = error { () async throws(TransferError) in try await request.write([1]) }
        async let read = error { () async throws(TransferError) in _ = try await request.readData() }
        async let tls = error { () async throws(TransferError) in try await request.startSecureConnection() }
        #expect(await write?.code == .cannotConnect)
        #expect(await read?.code == .cannotConnect)
        #expect(await tls?.code == .cannotConnect)
        #expect(await request.outcome.error?.code == .cannotConnect)
        #expect(request.retryCount == 2)
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("suspended while its attempt failed, a request goes on with the next one when it is resumed")
    func suspendedBetween() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let hold = try WakeUp(counting: true)
        let proxy = try TalkingPeer { socket in
            _ = try socket.readHead()
            hold.wait()
            socket.send(Array("HTTP/1.1 403 no\r\n\r\n".utf8))
        }
        let proxyURL = "http://127.0.0.1:\(proxy.port)"
        let adapter = Redirector { (request: inout TransferRequest, count: Int) throws(TransferError) in
            if count == 1 { request.proxy = proxyURL }
        }
        manager.adapter = adapter
        manager.retrier = CountingRetrier(limit: 1)
        let request = manager.stream(host: "127.0.0.1", port: peer.port).resume()
        try await eventually(that: "the first attempt connects") { proxy.connections == 1 }
        request.suspend()
        hold.signal()
        try await eventually(that: "the second attempt has its task") {
            adapter.asked.all.count == 2 && request.request?.proxy == nil
        }
        #expect(peer.connections == 0)
        request.resume()
        try await request.write([1])
        #expect(try await request.readData().data == [1])
        request.cancel()
        _ = await request.outcome
    }

    // MARK: The delegate

    @Test("K30: the request's own closures hear of closed sides and of streams, unless the session's do")
    func precedence() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        for overrides in [false, true] {
            let manager = try SessionManager(configuration: .test())
            let heard = Notes<String>()
            if overrides {
                manager.delegate.streamTaskReadClosed = { _ in heard.add("session read") }
                manager.delegate.streamTaskWriteClosed = { _ in heard.add("session write") }
                manager.delegate.streamTaskDidBecomeInputAndOutputStreams = { _, _, _ in heard.add("session streams") }
                manager.delegate.streamTaskBetterRouteDiscovered = { _ in heard.add("session route") }
                #expect(manager.delegate.responds(to: [.streamTaskReadClosed]))
                #expect(manager.delegate.responds(to: [.streamTaskWriteClosed]))
                #expect(manager.delegate.responds(to: [.streamTaskBetterRouteDiscovered]))
                #expect(manager.delegate.responds(to: [.streamTaskDidBecomeInputAndOutputStreams]))
            }
            let request = manager.stream(host: "127.0.0.1", port: peer.port)
            let own = try #require(request.delegate as? StreamTaskDelegate)
            own.streamTaskReadClosed = { _ in heard.add("read") }
            own.streamTaskWriteClosed = { _ in heard.add("write") }
            own.streamTaskBetterRouteDiscovered = { _ in heard.add("route") }
            own.streamTaskDidBecomeInputAndOutputStreams = { _, _, _ in heard.add("streams") }
            let (reader, writer) = try await request.captureStreams()
            let task = try #require(request.task as? StreamTask)
            // The kernel reports no route changes on loopback: the test calls the delegate method itself.
            manager.delegate.streamTask(betterRouteDiscoveredFor: task)
            writer.close()
            for try await _ in reader {}
            #expect(await request.outcome.error == nil)
            #expect(heard.all == ["streams", "route", "write", "read"].map { (overrides ? "session " : "") + $0 })
        }
    }

    @Test("a closure in the place of the completion leaves no call without an answer, and no request")
    func overriddenCompletion() async throws {
        let peer = try TalkingPeer { _ in }
        let ends = Notes<TransferError.Code?>()
        manager.delegate.taskDidComplete = { _, error in ends.add(error?.code) }
        let request = manager.stream(host: "127.0.0.1", port: try FreePort.next())
        #expect(
            await error { () async throws(TransferError) in _ = try await request.readData() }?.code == .cannotConnect)
        #expect(await request.outcome.error?.code == .cannotConnect)
        #expect(ends.all == [.cannotConnect])
        #expect(manager.delegate.requestCount == 0)
        #expect(peer.connections == 0)
    }

    // MARK: Released resources

    @Test(
        "500 streams at once, ended in five ways, leave no descriptor and no request, and each handler runs once",
        .timeLimit(.minutes(2)))
    func many() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let nobody = try FreePort.next()
        let handled = Mutex<[Int: Int]>([:])
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<500 {
                let request = manager.stream(host: "127.0.0.1", port: number % 5 == 4 ? nobody : peer.port)
                request.response { _ in handled.withLock { $0[number, default: 0] += 1 } }
                group.addTask {
                    let words = Array("number \(number)".utf8)
                    switch number % 5 {
                    case 0, 1:
                        let failure = await error { () async throws(TransferError) in
                            try await request.write(words)
                            request.closeWrite()
                            #expect(try await request.readData(ofMinLength: words.count).data == words)
                            #expect(try await request.readData().atEOF)
                        }
                        #expect(failure == nil)
                        #expect(await request.outcome.error == nil)
                    case 2:
                        for _ in 0..<(number % 50) { await Task.yield() }
                        request.cancel()
                        #expect(await request.outcome.error?.code == .cancelled)
                    case 3:
                        let failure = await error { () async throws(TransferError) in
                            try await request.write(words)
                            _ = try await request.readData(ofMinLength: 1000, timeout: 50)
                        }
                        #expect(failure?.code == .timedOut)
                        request.cancel()
                        #expect(await request.outcome.error?.code == .cancelled)
                    default:
                        #expect(
                            await error { () async throws(TransferError) in try await request.write(words) }?.code
                                == .cannotConnect)
                        #expect(await request.outcome.error?.code == .cannotConnect)
                    }
                }
            }
        }
        try await eventually(that: "every handler has run") { handled.withLock { $0.count } == 500 }
        #expect(handled.withLock { Set($0.values) } == [1])
        #expect(manager.delegate.requestCount == 0)
        #expect(peer.connections == 0)
    }

    @Test("K29: releasing the manager cancels its streams, and every call is answered", .timeLimit(.minutes(1)))
    func release() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        weak var session: Session?
        var requests: [StreamRequest] = []
        do {
            let manager = try SessionManager(configuration: .test())
            session = manager.session
            requests = (0..<5).map { _ in manager.stream(host: "127.0.0.1", port: peer.port) }
            for request in requests { try await request.write([1]) }
        }
        for request in requests { #expect(await request.outcome.error?.code == .cancelled) }
        requests = []
        try await eventually(that: "the session is gone") { session == nil }
        #expect(peer.connections == 0)
    }
}

private func error(_ work: () async throws(TransferError) -> Void) async -> TransferError? {
    do throws(TransferError) {
        try await work()
        return nil
    } catch {
        return error
    }
}
