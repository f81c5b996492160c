import FoundationEssentials
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Time-outs of one request", .timeLimit(.minutes(1)))
struct RequestDeadlineTests {
    private func request(_ url: String, timeout: Int64? = nil, total: Int64? = nil) -> TransferRequest {
        var request = TransferRequest(url: url)
        request.timeout = timeout
        request.totalTimeout = total
        return request
    }

    @Test("a request's time-out takes the place of the session's stall time-out")
    func stall() async throws {
        let server = try ScriptedServer(["/h": [.hang]])
        let manager = try SessionManager(configuration: .test())
        let outcome = await manager.request(request(server.url("/h"), timeout: 300)).outcome
        #expect(outcome.error?.code == .stalled)
        #expect(outcome.error?.message == "no data, or too little, for 300 ms")
        let download = await manager.download(request(server.url("/h"), timeout: 300)).outcome
        #expect(download.error?.code == .stalled)
    }

    @Test("a request's time-out can be longer than the session's")
    func longer() async throws {
        let resource = Resource(size: 2_000)
        let server = try ScriptedServer(["/d": [.drip(resource, bytesPerSecond: 1_000)]])
        let manager = try SessionManager(configuration: .test { $0.stallTimeout = 60_000 })
        #expect(await manager.request(request(server.url("/d"), timeout: 0)).outcome.error == nil)
        #expect(server.requests().count == 1)
    }

    @Test("a request's time-out takes the place of the session's connect time-out")
    func connect() async throws {
        let hole = try BlackHole()
        let manager = try SessionManager(configuration: .test())
        let outcome = await manager.request(request("http://127.0.0.1:\(hole.port)/", timeout: 300)).outcome
        #expect(outcome.error?.code == .timedOut)
    }

    @Test("a request's time-out counts for file servers and streams too", arguments: ["connect", "RETR"])
    func otherProtocols(silentStep: String) async throws {
        var manner = ScriptedFTPServer.Manner(files: ["/f": [1, 2, 3]])
        manner.replies[silentStep] = ""
        let server = try ScriptedFTPServer(manner)
        let (manager, place) = (try SessionManager(configuration: .test()), try Place())
        let path = place.temporary.file("file")
        let outcome = await manager.download(request(server.url("/f"), timeout: 500), to: path).outcome
        let code = try #require(outcome.error?.code)
        #expect([.timedOut, .stalled, .cannotConnect].contains(code), "\(outcome.error?.message ?? "")")

        let peer = try TalkingPeer { try $0.echo() }
        let stream = manager.stream(request("tcp://127.0.0.1:\(peer.port)", timeout: 500))
        let error = await #expect(throws: TransferError.self) { try await stream.readData() }
        #expect(error?.code == .stalled && error?.message == "no data for 500 ms", "\(error?.message ?? "")")
    }

    @Test("the time limit of the whole ends a running attempt, and nothing is retried")
    func runningAttempt() async throws {
        let server = try ScriptedServer(["/h": [.hang]])
        let manager = try SessionManager(configuration: .test())
        manager.retrier = CountingRetrier(limit: 5)
        let request = manager.request(request(server.url("/h"), total: 300))
        let events = manager.session.events.stream()
        let outcome = await request.outcome
        #expect(outcome.error?.code == .timedOut)
        #expect(outcome.error?.message == "the request took longer than its total time-out of 300 ms")
        #expect(!request.isCancelled && request.retryCount == 0 && server.requests().count == 1)
        for await event in events {
            if case .didCancel = event { Issue.record("the request was not cancelled by anyone") }
            if case .didComplete(_, let error) = event {
                #expect(error?.code == .timedOut)
                break
            }
        }
    }

    @Test("the time limit of the whole covers attempts and the times between them")
    func attempts() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        let manager = try SessionManager(configuration: .test())
        manager.retrier = CountingRetrier(limit: 1_000, delay: 50)
        let request = manager.request(request(server.url("/f"), total: 400)).validate()
        #expect(await request.outcome.error?.code == .timedOut)
        #expect(request.retryCount > 0)

        manager.retrier = CountingRetrier(limit: 1, delay: 60_000)
        let waiting = manager.request(self.request(server.url("/f"), total: 300)).validate()
        #expect(await waiting.outcome.error?.code == .timedOut)
    }

    @Test("the time limit of the whole runs while an adapter works and while the request is suspended")
    func adapterAndSuspension() async throws {
        let server = try ScriptedServer(["/h": [.hang]])
        let manager = try SessionManager(configuration: .test())
        let adapted = manager.request(request(server.url("/h"), total: 300))
            .adapt(with: ClosureAdapter { (_) async throws(TransferError) in await CancellableSleep.sleep(60_000) })
        #expect(await adapted.outcome.error?.code == .timedOut)
        let suspended = manager.request(request(server.url("/h"), total: 300)).resume().suspend()
        #expect(await suspended.outcome.error?.code == .timedOut)
    }

    @Test("a download whose time is over has resume data, and continues from them")
    func resumeData() async throws {
        let resource = Resource(size: 400_000)
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: 200_000, bytesPerSecond: 1_000), .serve(resource)]
        ])
        let (manager, place) = (try SessionManager(configuration: .test()), try Place())
        let path = place.temporary.file("file")
        let broken = await manager.download(request(server.url("/f"), total: 1_000), to: path).outcome
        #expect(broken.error?.code == .timedOut)
        let resumeData = try #require(broken.resumeData)
        #expect(resumeData.ranges.contiguousEnd >= 100_000 && broken.error?.resumeData == resumeData)
        #expect(resumeData.record?.request.request.totalTimeout == 1_000)
        let again = manager.download(resumingWith: resumeData, request: server.url("/f"))
        #expect(try await again.value.path == path)
        #expect(try bytes(ofFileAt: path) == resource.bytes(0..<400_000))
    }

    @Test("a request that ends earlier ends its timer, and a user's cancellation stays one")
    func earlierEnd() async throws {
        let deadline = RequestDeadline()
        weak let gone: RequestDeadline? = deadline
        let expired = Mutex(0)
        deadline.start(50) { expired.withLock { $0 += 1 } }
        deadline.start(1) { expired.withLock { $0 += 10 } }
        #expect(deadline.stop(with: nil) == nil)
        deadline.start(nil) { expired.withLock { $0 += 100 } }
        deadline.start(0) { expired.withLock { $0 += 100 } }
        await CancellableSleep.sleep(200)
        #expect(expired.withLock { $0 } == 0 && !deadline.isExpired && gone != nil)

        let server = try ScriptedServer(["/h": [.hang], "/f": [.status(200, body: "x")]])
        let manager = try SessionManager(configuration: .test())
        let cancelled = manager.request(request(server.url("/h"), total: 60_000)).resume()
        cancelled.cancel()
        #expect(await cancelled.outcome.error?.code == .cancelled)
        #expect(cancelled.isCancelled)
        #expect(await manager.request(request(server.url("/f"), total: 60_000)).outcome.error == nil)
    }

    @Test("a finished request leaves no timer that holds it")
    func release() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "x")]])
        let manager = try SessionManager(configuration: .test())
        let holder = Holder()
        do {
            let request = manager.request(request(server.url("/f"), total: 600_000))
            holder.request = request
            _ = await request.outcome
        }
        // The handlers that ran last may hold the request for a moment.
        _ = try await eventually(have: "the release of the request") { holder.request == nil ? true : nil }
    }

    private final class Holder: @unchecked Sendable {
        weak var request: Request?
    }
}
