import Curl
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// Returns a task with the result of a stream task's call, to be awaited later.
private func outcome<Value: Sendable>(
    _ work: @escaping @Sendable () async throws(TransferError) -> Value
) -> Task<Result<Value, TransferError>, Never> {
    Task {
        do throws(TransferError) { return .success(try await work()) } catch { return .failure(error) }
    }
}

private func failure(_ work: () async throws(TransferError) -> Void) async -> TransferError.Code? {
    do throws(TransferError) {
        try await work()
        return nil
    } catch {
        return error.code
    }
}

extension StreamTask {
    fileprivate func readToEnd() async throws(TransferError) -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let piece = try await readData()
            all += piece.data
            if piece.atEOF { return all }
        }
    }

    fileprivate func text(_ least: Int = 1, _ most: Int = 65536) async throws(TransferError) -> String {
        String(decoding: try await readData(ofMinLength: least, maxLength: most).data, as: UTF8.self)
    }

    fileprivate func completion() async throws {
        try await eventually(that: "the task is complete", within: .seconds(30), every: .milliseconds(2)) {
            state == .completed
        }
    }
}

@Suite("Stream tasks")
struct StreamTaskTests {
    private let session: Session

    init() throws { session = try Session(configuration: .test()) }

    private func open(_ peer: TalkingPeer) -> StreamTask {
        let task = session.streamTask(host: "127.0.0.1", port: peer.port)
        task.resume()
        return task
    }

    // MARK: Bytes

    @Test("8 MiB go there and come back byte for byte, neither side held in memory", .timeLimit(.minutes(1)))
    func echo() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let task = open(peer)
        let bytes = Resource(size: 8 << 20).bytes
        let writing = outcome { () async throws(TransferError) in
            for start in stride(from: 0, to: bytes.count, by: 100_000) {
                try await task.write(Array(bytes[start..<min(start + 100_000, bytes.count)]))
            }
            task.closeWrite()
        }
        var all: [UInt8] = []
        while true {
            let piece = try await task.readData(ofMinLength: 1000, maxLength: 30_000)
            #expect(task.channel.heldBytes <= StreamTask.heldLimit + 256 * 1024)
            all += piece.data
            if piece.atEOF { break }
        }
        #expect(all == bytes)
        #expect(await writing.value.error == nil)
        try await task.completion()
        #expect(task.error == nil)
        #expect(task.bytesReceived == 8 << 20 && task.bytesSent == 8 << 20)
        #expect(task.progress.completedBytes == 8 << 20)
        #expect(peer.connections == 0)
        // Reads after the end report the end again.
        #expect(try await task.readData().atEOF)
        #expect(await failure { () async throws(TransferError) in _ = try await task.write([1]) } == .streamClosed)
    }

    @Test("one write of 8 MiB and one read of 8 MiB do as well")
    func large() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let task = open(peer)
        let bytes = Resource(size: 8 << 20).bytes
        let writing = outcome { () async throws(TransferError) in try await task.write(bytes) }
        let piece = try await task.readData(ofMinLength: 8 << 20, maxLength: 8 << 20)
        #expect(piece.data == bytes)
        #expect(!piece.atEOF)
        #expect(await writing.value.error == nil)
        task.cancel()
    }

    @Test("reads that wait together are served in their order, with as many bytes as each asked for")
    func minimumAndMaximum() async throws {
        let go = try WakeUp(counting: true)
        let peer = try TalkingPeer { socket in
            socket.send(Array("abc".utf8))
            go.wait()
            socket.send(Array("defghij".utf8))
        }
        let task = open(peer)
        let first = outcome { () async throws(TransferError) in try await task.text(5, 6) }
        try await eventually(that: "some have come") { task.bytesReceived == 3 }
        let second = outcome { () async throws(TransferError) in try await task.text(4, 9) }
        #expect(try await task.completesNothing(within: first, second))
        go.signal()
        #expect(try await first.value.get() == "abcdef")
        #expect(try await second.value.get() == "ghij")
        let rest = try await task.readData(ofMinLength: 3)
        #expect(rest.data.isEmpty && rest.atEOF)
        task.closeWrite()
        try await task.completion()
    }

    @Test("a read of no size, of too much, or with more at least than at most is refused")
    func wrongSizes() async throws {
        let task = session.streamTask(host: "127.0.0.1", port: 1)
        for (least, most) in [(1, 0), (-1, 4), (5, 4), (1, StreamTask.longestRead + 1)] {
            let read = outcome { () async throws(TransferError) in
                try await task.readData(ofMinLength: least, maxLength: most).data
            }
            #expect(await read.value.error?.code == .invalidRequest)
        }
    }

    @Test("the bytes come one by one too, up to the peer's end")
    func byteSequence() async throws {
        let peer = try TalkingPeer { $0.send(Array("one\ntwo".utf8)) }
        let task = open(peer)
        var all: [UInt8] = []
        for try await byte in task.bytes { all.append(byte) }
        #expect(String(decoding: all, as: UTF8.self) == "one\ntwo")
        task.cancel()
    }

    // MARK: Half-closed connections

    @Test("after our end the peer's answer is read, and the task is complete with both")
    func weCloseFirst() async throws {
        let peer = try TalkingPeer { socket in socket.send(try socket.readToEnd().reversed()) }
        let task = open(peer)
        try await task.write(Array("abc".utf8))
        task.closeWrite()
        task.closeWrite()
        #expect(try await task.readToEnd() == Array("cba".utf8))
        try await task.completion()
        #expect(task.error == nil)
    }

    @Test("after the peer's end we still write, and the task waits for ours")
    func peerClosesFirst() async throws {
        let heard = Notes<[UInt8]>()
        let peer = try TalkingPeer { socket in
            socket.send(Array("bye".utf8))
            socket.endWriting()
            heard.add(try socket.readToEnd())
        }
        let closed = Notes<String>()
        session.delegate.streamTaskReadClosed = { _ in closed.add("read") }
        session.delegate.streamTaskWriteClosed = { _ in closed.add("write") }
        let task = open(peer)
        #expect(try await task.readToEnd() == Array("bye".utf8))
        #expect(task.state == .running)
        try await task.write(Array("still here".utf8))
        task.closeWrite()
        try await task.completion()
        try await eventually(that: "the peer has it all") { heard.all == [Array("still here".utf8)] }
        #expect(closed.all == ["read", "write"])
    }

    @Test("with both sides closed by us what was written arrives, and reading is refused")
    func bothSides() async throws {
        let heard = Notes<Int>()
        let peer = try TalkingPeer { socket in
            socket.send([UInt8](repeating: 1, count: 300_000))
            heard.add(try socket.readToEnd().count)
        }
        let task = open(peer)
        let read = try await task.readData(ofMinLength: 10, maxLength: 10)
        #expect(read.data.count == 10)
        task.closeRead()
        let refused = outcome { () async throws(TransferError) in try await task.readData().data }
        #expect(await refused.value.error?.code == .streamClosed)
        try await task.write([UInt8](repeating: 2, count: 200_000))
        task.closeWrite()
        try await task.completion()
        #expect(task.error == nil)
        try await eventually(that: "the peer has it all") { heard.all == [200_000] }
    }

    // MARK: Misbehaving peers

    @Test("a reset answers whoever waits, after the bytes that came before it")
    func reset() async throws {
        let peer = try TalkingPeer { socket in
            socket.send(Array("half".utf8))
            _ = try socket.receive(atMost: 1)
            socket.resetOnClose()
        }
        let task = open(peer)
        let long = outcome { () async throws(TransferError) in try await task.text(100, 100) }
        let next = outcome { () async throws(TransferError) in try await task.text(100, 100) }
        try await eventually(that: "some have come") { task.bytesReceived == 4 }
        try await task.write([1])
        #expect(await long.value.error?.code == .truncated)
        #expect(await long.value.error?.systemError == ECONNRESET)
        #expect(await next.value.error?.code == .truncated)
        try await task.completion()
        #expect(task.error?.code == .truncated)
        #expect(try await task.text() == "half")
        #expect(await failure { () async throws(TransferError) in _ = try await task.text() } == .truncated)
        #expect(await failure { () async throws(TransferError) in _ = try await task.write([1]) } == .truncated)
        #expect(peer.connections == 0)
    }

    @Test("a peer that never reads holds up the writer, whose time ends the task once it has begun")
    func neverReads() async throws {
        let release = try WakeUp(counting: true)
        let peer = try TalkingPeer { _ in release.wait() }
        defer { release.signal() }
        let task = open(peer)
        let large = [UInt8](repeating: 7, count: 32 << 20)
        let first = outcome { () async throws(TransferError) in try await task.write(large) }
        try await eventually(that: "it has begun") { task.bytesSent > 0 }
        // The write is queued behind the first one: it is withdrawn, and the stream continues.
        let second = outcome { () async throws(TransferError) in try await task.write([1], timeout: 50) }
        #expect(await second.value.error?.code == .timedOut)
        #expect(task.state == .running)
        task.cancel()
        #expect(await first.value.error?.code == .cancelled)

        let other = open(peer)
        let timed = outcome { () async throws(TransferError) in try await other.write(large, timeout: 200) }
        try await eventually(that: "the large one has begun") { other.bytesSent > 0 }
        let behind = outcome { () async throws(TransferError) in try await other.write([1]) }
        #expect(await timed.value.error?.code == .timedOut)
        #expect(await behind.value.error?.code == .timedOut)
        try await other.completion()
        #expect(other.error?.code == .timedOut)
        #expect(other.bytesSent < 32 << 20)
        #expect(peer.connections == 0)
    }

    @Test("a silent peer ends a read with its time, and what came is the next one's")
    func silent() async throws {
        let go = try WakeUp(counting: true)
        let peer = try TalkingPeer { socket in
            socket.send(Array("ab".utf8))
            go.wait()
            socket.send(Array("cd".utf8))
            _ = try socket.readToEnd()
        }
        let task = open(peer)
        let timed = outcome { () async throws(TransferError) in
            try await task.readData(ofMinLength: 3, timeout: 100).data
        }
        let patient = outcome { () async throws(TransferError) in try await task.text(4, 4) }
        #expect(await timed.value.error?.code == .timedOut)
        #expect(task.state == .running)
        go.signal()
        #expect(try await patient.value.get() == "abcd")
        task.cancel()
    }

    @Test("a silent peer stalls the task only while somebody waits, and not one who named a time")
    func stall() async throws {
        let session = try Session(configuration: .test { $0.stallTimeout = 200 })
        let peer = try TalkingPeer { try $0.echo() }
        let task = session.streamTask(host: "127.0.0.1", port: peer.port)
        task.resume()
        try await task.write([1])
        #expect(try await task.readData().data == [1])
        try await Task.sleep(for: .milliseconds(500))
        #expect(task.state == .running)
        let timed = outcome { () async throws(TransferError) in try await task.readData(timeout: 600).data }
        #expect(await timed.value.error?.code == .timedOut)
        #expect(task.state == .running)
        let begin = MonotonicTime.now()
        #expect(await failure { () async throws(TransferError) in _ = try await task.text() } == .stalled)
        #expect((190...5000).contains(MonotonicTime.now().milliseconds(since: begin)))
        try await task.completion()
        #expect(task.error?.code == .stalled)
    }

    // MARK: Failed connections

    @Test("a port that nobody listens on, a name without address and a URL that is none answer every call")
    func noConnection() async throws {
        let session = try Session(
            configuration: .test(), delegate: SessionDelegate(), resolver: Resolver { _ in .failure(.unknownName) })
        let port = try FreePort.next()
        for (url, code) in [
            ("tcp://127.0.0.1:\(port)", TransferError.Code.cannotConnect), ("tcp://nowhere.test:1", .unknownHost),
            ("tcp://127.0.0.1", .invalidRequest), ("tcp://127.0.0.1:0", .invalidRequest),
            ("tcp://127.0.0.1:70000", .invalidRequest), ("tcp://user@127.0.0.1:80", .invalidRequest),
            ("tcp://127.0.0.1:80/path", .invalidRequest), ("tcp://a b:80", .invalidRequest),
            ("tcp://::1:80", .invalidRequest), ("tcp://:80", .invalidRequest), ("tcp://h:80\r\nX: y", .invalidRequest),
            ("http://127.0.0.1:80", .protocolNotAllowed), ("", .protocolNotAllowed),
        ] {
            let task = session.streamTask(with: TransferRequest(url: url))
            let read = outcome { () async throws(TransferError) in try await task.text() }
            let write = outcome { () async throws(TransferError) in try await task.write([1]) }
            let tls = outcome { () async throws(TransferError) in try await task.startSecureConnection() }
            task.resume()
            #expect(await read.value.error?.code == code, "\(url)")
            #expect(await write.value.error?.code == code, "\(url)")
            #expect(await tls.value.error?.code == code, "\(url)")
            try await task.completion()
            #expect(task.error?.code == code)
        }
    }

    @Test("host and port make a URL that gives them back, IPv6 with its zone too")
    func urls() throws {
        for (host, url) in [
            ("example.org", "tcp://example.org:25"), ("::1", "tcp://[::1]:25"), ("[::1]", "tcp://[::1]:25"),
            ("fe80::1%eth0", "tcp://[fe80::1%25eth0]:25"),
        ] {
            #expect(StreamAddress.url(host: host, port: 25) == url)
            let peer = try StreamAddress.peer(of: url)
            #expect(peer.port == 25)
            #expect(peer.host == (host == "[::1]" ? "::1" : host))
        }
        #expect(try StreamAddress.peer(of: "TCP://Host.test:080/").host == "Host.test")
    }

    @Test("a name server that does not answer holds up nobody, and ends with the connect timeout")
    func slowResolver() async throws {
        let release = try WakeUp(counting: true)
        defer { release.signal() }
        let resolver = Resolver { host in
            if host == "slow.test" { release.wait() }
            return .success(["127.0.0.1"])
        }
        let session = try Session(
            configuration: .test {
                $0.connectTimeout = 300
                $0.loops = 1
            }, delegate: SessionDelegate(), resolver: resolver)
        let peer = try TalkingPeer { try $0.echo() }
        let slow = session.streamTask(host: "slow.test", port: peer.port)
        slow.resume()
        let quick = session.streamTask(host: "quick.test", port: peer.port)
        quick.resume()
        try await quick.write([1])
        #expect(try await quick.readData().data == [1])
        #expect(await failure { () async throws(TransferError) in _ = try await slow.text() } == .timedOut)
        quick.cancel()
        // A call's time-out also runs while no connection exists.
        let patient = try Session(configuration: .test(), delegate: SessionDelegate(), resolver: resolver)
        let waiting = patient.streamTask(host: "slow.test", port: peer.port)
        waiting.resume()
        let read = await failure { () async throws(TransferError) in _ = try await waiting.readData(timeout: 20) }
        #expect(read == .timedOut)
        #expect(waiting.state == .running)
        waiting.cancel()
    }

    // MARK: Cancelling

    /// Adds every kind of call, one after another: a write waits only behind a large one.
    private func wait(on task: StreamTask, _ waiting: inout [Task<Result<Void, TransferError>, Never>]) async throws {
        func add(_ call: Task<Result<Void, TransferError>, Never>) async throws {
            waiting.append(call)
            let count = waiting.count
            try await eventually(that: "it waits", every: .milliseconds(1)) { task.channel.waiting == count }
        }
        let large = [UInt8](repeating: 1, count: 32 << 20)
        try await add(outcome { () async throws(TransferError) in _ = try await task.readData(ofMinLength: 9) })
        try await add(outcome { () async throws(TransferError) in _ = try await task.readData(timeout: 60_000) })
        try await add(outcome { () async throws(TransferError) in try await task.write(large) })
        try await add(outcome { () async throws(TransferError) in try await task.write([1], timeout: 60_000) })
        try await add(outcome { () async throws(TransferError) in try await task.startSecureConnection() })
        try await add(outcome { () async throws(TransferError) in _ = try await task.readData() })
        try await add(outcome { () async throws(TransferError) in try await task.write([1]) })
    }

    @Test(
        "a cancel answers every call, in whichever state it comes", .timeLimit(.minutes(1)),
        arguments: [
            "before the start", "suspended", "looking up", "connecting", "open", "shaking hands",
        ])
    func cancel(in state: String) async throws {
        let release = try WakeUp(counting: true)
        defer { release.signal() }
        let resolver = Resolver { _ in
            release.wait()
            return .success(["127.0.0.1"])
        }
        let session = try Session(configuration: .test(), delegate: SessionDelegate(), resolver: resolver)
        let ends = Notes<TransferError.Code?>()
        session.delegate.taskDidComplete = { _, error in ends.add(error?.code) }
        // The peer never reads, and as a proxy never responds.
        let hold = try WakeUp(counting: true)
        defer { hold.signal() }
        let peer = try TalkingPeer { socket in
            if state != "connecting" { socket.send([1]) }
            hold.wait()
        }
        var request = TransferRequest(
            url: StreamAddress.url(host: state == "looking up" ? "slow.test" : "127.0.0.1", port: peer.port))
        if state == "connecting" { request.proxy = "http://127.0.0.1:\(peer.port)" }
        let task = session.streamTask(with: request)
        var waiting: [Task<Result<Void, TransferError>, Never>] = []
        switch state {
        case "before the start": break
        case "suspended":
            task.resume()
            task.suspend()
        case "shaking hands":
            task.resume()
            #expect(try await task.readData().data == [1])
            waiting.append(outcome { () async throws(TransferError) in try await task.startSecureConnection() })
            try await eventually(that: "the handshake runs") { task.channel.isSecuring }
        case "open":
            task.resume()
            #expect(try await task.readData().data == [1])
        default: task.resume()
        }
        try await wait(on: task, &waiting)
        if state == "connecting" { try await eventually(that: "there is a connection") { peer.connections >= 1 } }
        task.cancel()
        task.cancel()
        for call in waiting { #expect(await call.value.error?.code == .cancelled) }
        try await task.completion()
        #expect(task.channel.waiting == 0)
        #expect(await failure { () async throws(TransferError) in _ = try await task.text() } == .cancelled)
        try await eventually(that: "the delegate has heard of it") { ends.all == [.cancelled] }
        #expect(peer.connections == 0)
    }

    @Test("cancelling who waits for a read takes that back alone; who waits for a begun write, the task")
    func cancelCall() async throws {
        let go = try WakeUp(counting: true)
        let peer = try TalkingPeer { socket in
            go.wait()
            socket.send(Array("abc".utf8))
            go.wait()
        }
        defer { go.signal() }
        let task = open(peer)
        let first = outcome { () async throws(TransferError) in try await task.text(2, 2) }
        try await eventually(that: "it waits") { task.channel.waiting == 1 }
        first.cancel()
        #expect(await first.value.error?.code == .cancelled)
        go.signal()
        #expect(try await task.text(3) == "abc")
        let gone = outcome { () async throws(TransferError) in
            withUnsafeCurrentTask { $0?.cancel() }
            try await task.write([1])
        }
        #expect(await gone.value.error?.code == .cancelled)
        #expect(task.bytesSent == 0)
        #expect(task.state == .running)
        let write = outcome { () async throws(TransferError) in
            try await task.write([UInt8](repeating: 1, count: 32 << 20))
        }
        try await eventually(that: "it has begun") { task.bytesSent > 0 }
        write.cancel()
        #expect(await write.value.error?.code == .cancelled)
        try await task.completion()
        #expect(task.error?.code == .cancelled)
    }

    @Test("an invalidated session cancels its streams, and refuses new ones with every call of theirs")
    func invalidated() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let task = open(peer)
        let read = outcome { () async throws(TransferError) in try await task.text() }
        try await eventually(that: "it waits") { task.channel.waiting == 1 }
        session.invalidateAndCancel()
        #expect(await read.value.error?.code == .cancelled)
        try await task.completion()
        #expect(task.error?.code == .cancelled)
        let late = open(peer)
        #expect(await failure { () async throws(TransferError) in _ = try await late.text() } == .invalidated)
    }

    @Test("a suspended task gives out nothing, and no read's time runs")
    func suspended() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let task = open(peer)
        try await task.write(Array("abc".utf8))
        #expect(try await task.text(3, 3) == "abc")
        task.suspend()
        // The loop may still finish its current work.
        try await eventually(that: "the loop knows") { task.channel.isSuspended }
        let read = outcome { () async throws(TransferError) in
            try await task.readData(ofMinLength: 3, timeout: 150).data
        }
        let write = outcome { () async throws(TransferError) in try await task.write(Array("def".utf8)) }
        try await eventually(that: "both wait") { task.channel.waiting == 2 }
        try await Task.sleep(for: .milliseconds(400))
        #expect(task.bytesSent == 3)
        #expect(task.channel.waiting == 2)
        task.resume()
        #expect(await write.value.error == nil)
        #expect(try await read.value.get() == Array("def".utf8))
        task.cancel()
    }

    // MARK: Captured streams

    @Test("captured after what was asked for before, the task goes on as a reader and a writer")
    func capture() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let told = Notes<StreamReader>()
        session.delegate.streamTaskDidBecomeInputAndOutputStreams = { _, reader, _ in told.add(reader) }
        let task = open(peer)
        let before = outcome { () async throws(TransferError) in try await task.text(5, 5) }
        try await task.write(Array("hello".utf8))
        let (reader, writer) = try await task.captureStreams()
        #expect(try await before.value.get() == "hello")
        #expect(told.all.count == 1)
        #expect(await failure { () async throws(TransferError) in _ = try await task.text() } == .streamClosed)
        #expect(await failure { () async throws(TransferError) in _ = try await task.write([1]) } == .streamClosed)
        #expect(
            await failure { () async throws(TransferError) in _ = try await task.captureStreams() }
                == .streamClosed)
        task.closeWrite()
        try await writer.write(Array("more".utf8))
        writer.close()
        var all: [UInt8] = []
        for try await piece in reader { all += piece }
        #expect(all == Array("more".utf8))
        try await task.completion()
        #expect(task.error == nil)
    }

    // MARK: Metrics

    @Test("one entry of the metrics tells when the stream connected and ended, and with whom")
    func metrics() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let session = try Session(
            configuration: .test(), delegate: SessionDelegate(), resolver: Resolver { _ in .success(["127.0.0.1"]) })
        let task = session.streamTask(host: "peer.test", port: peer.port)
        task.resume()
        try await task.write([1])
        #expect(try await task.readData().data == [1])
        task.closeWrite()
        try await task.completion()
        #expect(task.metrics.exchanges.count == 1)
        let exchange = try #require(task.metrics.last)
        let timeline = exchange.timeline
        let (looked, connected) = (try #require(timeline.nameLookedUp), try #require(timeline.connected))
        let first = try #require(timeline.firstByte)
        #expect(looked <= connected && connected <= first && first <= timeline.ended)
        #expect(timeline.secured == nil && timeline.requestBegan == nil)
        #expect(exchange.url == "tcp://peer.test:\(peer.port)")
        #expect(exchange.remoteAddress == "127.0.0.1" && exchange.remotePort == peer.port)
        #expect(exchange.status == nil && exchange.protocolName == nil && !exchange.isReusedConnection)
    }

    @Test("while the kernel would take the same way again, no better route is told of")
    func sameRoute() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let told = Notes<Int>()
        session.delegate.streamTaskBetterRouteDiscovered = { told.add($0.identifier) }
        let task = open(peer)
        try await task.write([1])
        session.routesDidChange()
        #expect(try await task.readData().data == [1])
        #expect(told.all.isEmpty)
        task.cancel()
    }
}

extension StreamTask {
    /// Returns whether waiting calls still wait after a turn of the loop.
    fileprivate func completesNothing(within calls: Task<Result<String, TransferError>, Never>...) async throws -> Bool
    {
        try await eventually(that: "all are there") { channel.waiting == calls.count }
        await withCheckedContinuation { continuation in
            session.perform(self) { _ in continuation.resume() }
        }
        return channel.waiting == calls.count
    }
}
