import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Sessions and how they end")
struct SessionTests {
    private let place: Place

    init() throws { place = try Place() }

    @Test("a timeout of nothing is none, and the longest there is does not stand in the way", arguments: [0, -1, .max])
    func timeouts(milliseconds: Int64) async throws {
        let manager = try SessionManager(
            configuration: .test {
                $0.connectTimeout = milliseconds
                $0.stallTimeout = milliseconds
            })
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let files = try ScriptedFTPServer(.init(files: ["file": [1]]))
        // The host is a name, which must be resolved first.
        #expect(try await manager.request("http://localhost:\(server.port)/f").string == "abc")
        #expect(Array(try await manager.request(files.url("/file")).value) == [1])
    }

    @Test("F81: a request's own time comes first, then its host's, then the session's")
    func timeoutsByHost() {
        var configuration = SessionConfiguration()
        configuration.connectTimeouts = HostTable(["a.test": 1_000, "[::1]": 2_000])
        configuration.stallTimeouts = HostTable(["*.test": 3_000])
        func times(_ url: String, _ change: (inout TransferRequest) -> Void = { _ in }) -> [Int64] {
            var request = TransferRequest(url: url)
            change(&request)
            return [configuration.connectTimeout(of: request), configuration.stallTimeout(of: request)]
        }
        #expect(times("http://a.test:8080/") == [1_000, 3_000])
        #expect(times("http://b.test/") == [30_000, 3_000])
        #expect(times("http://[::1%25lo]/") == [2_000, 60_000])
        #expect(times("http://b.example/") == [30_000, 60_000])
        #expect(times("http://a.test:8080/") { $0.timeout = 5 } == [5, 5])
        #expect(times("http://a.test:8080/") { ($0.timeout, $0.stallTimeout) = (5, 6) } == [5, 6])
        #expect(times("http://a.test:8080/") { $0.connectTimeout = 7 } == [7, 3_000])
        #expect(times("http://a.test/") { $0.connectTimeout = 0 } == [300_000, 3_000])
    }

    @Test("releasing the manager cancels what is under way, and every completion runs", .timeLimit(.minutes(1)))
    func release() async throws {
        let server = try ScriptedServer(["/hang": [.hang]])
        weak var released: SessionManager?
        weak var session: Session?
        var requests: [DownloadRequest] = []
        do {
            let manager = try SessionManager(configuration: .test())
            released = manager
            session = manager.session
            for number in 0..<10 {
                let target = place.target("\(number)", part: ".\(number).part")
                requests.append(manager.download(TransferRequest(url: server.url("/hang")), to: target).resume())
            }
            try await eventually(that: "all have been asked") { server.requests().count == 10 }
        }
        #expect(released == nil)
        for request in requests { #expect(await request.outcome.result.error?.code == .cancelled) }
        requests = []
        try await eventually(that: "the session is gone") { session == nil }
    }

    @Test("an invalid session takes no tasks, and says once that it is invalid")
    func invalidation() async throws {
        let manager = try SessionManager(configuration: .test())
        let told = Notes<Bool>()
        manager.delegate.sessionDidBecomeInvalid = { _, _ in told.add(true) }
        manager.session.invalidateAndCancel()
        manager.session.invalidateAndCancel()
        manager.session.finishTasksAndInvalidate()
        #expect(told.all == [true])
        let outcome = await manager.download(TransferRequest(url: "http://127.0.0.1/"), to: place.target()).outcome
        #expect(outcome.result.error?.code == .invalidated)
        #expect(told.all == [true])
    }

    @Test("tasks that are there go on to their end when a session is to finish")
    func finishing() async throws {
        let resource = Resource(size: 400_000)
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 4_000_000)]])
        let manager = try SessionManager(configuration: .test())
        let told = Notes<Bool>()
        manager.delegate.sessionDidBecomeInvalid = { _, _ in told.add(true) }
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        request.resume()
        manager.session.finishTasksAndInvalidate()
        #expect(resource.difference(fromFileAt: try await request.value.path) == nil)
        try await eventually(that: "the session has ended") { told.all == [true] }
    }

    @Test("a task that is cancelled on its way to its loop never asks for anything", .timeLimit(.minutes(1)))
    func cancelBeforeLoop() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let delegate = SessionDelegate()
        let session = try Session(configuration: .test(), delegate: delegate)
        let ends = AsyncStream.makeStream(of: TransferError.Code?.self)
        delegate.taskDidComplete = { _, error in
            ends.continuation.yield(error?.code)
            ends.continuation.finish()
        }
        let task = session.downloadTask(with: TransferRequest(url: server.url("/f")), target: place.target())
        // Simulates a cancellation by another thread between the two halves of `resume`.
        _ = task.core.resume()
        task.cancel()
        session.start(task)
        for await code in ends.stream { #expect(code == .cancelled) }
        #expect(server.requests().isEmpty)
        session.invalidateAndCancel()
    }

    @Test("cancels from everywhere at any moment leave every request complete", .timeLimit(.minutes(1)))
    func cancelStorm() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 300_000))]])
        let manager = try SessionManager(configuration: .test())
        manager.retrier = CountingRetrier(limit: 3)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask {
                    let target = place.target("\(number)", owner: "test-\(number)x", part: ".\(number).part")
                    let request = manager.download(TransferRequest(url: server.url("/f")), to: target)
                    for _ in 0..<(number * 20) { await Task.yield() }
                    request.cancel()
                    let error = await request.outcome.result.error
                    #expect(error == nil || error?.code == .cancelled)
                }
            }
        }
        #expect(manager.delegate.requestCount == 0)
    }
}
