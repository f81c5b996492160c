import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Downloads that go on from resume data alone")
struct SelfSufficientResumingTests {
    private let place: Place
    private let manager: SessionManager
    private let resource = Resource(size: 900_000)
    /// Servers kept alive until the end of the test.
    private let servers = Notes<ScriptedServer>()
    private let lives = Notes<SessionManager>()

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    private func path(_ name: String) -> String { place.temporary.file(name) }

    /// Creates a server that sends 600,000 bytes at once and the rest so slowly that a test ends before it, then sends
    /// normal responses.
    private func slowServer(_ then: [ScriptedAnswer]? = nil) throws -> ScriptedServer {
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: 600_000, bytesPerSecond: 1)] + (then ?? [.serve(resource)])
        ])
        servers.add(server)
        return server
    }

    /// Starts `request` and waits until it has written some bytes.
    private func begin(_ request: DownloadRequest) async throws {
        request.resume()
        try await eventually(that: "bytes are on disk") { request.progress.completedBytes > 0 }
    }

    /// Resumes the download as another process would: from encoded data, in another manager.
    private func inAnotherLife(
        _ resumeData: ResumeData, to destination: DownloadDestination? = nil
    ) async throws -> DownloadRequest {
        let manager = try SessionManager(configuration: .test())
        lives.add(manager)
        let read = try #require(ResumeData(bytes: resumeData.bytes))
        #expect(read == resumeData)
        return manager.download(resumingWith: read, to: destination)
    }

    /// Returns a server and the resume data of a download that was cut after `after` bytes.
    private func interrupted(
        after: Int64 = 300_000, then answers: [ScriptedAnswer]
    ) async throws -> (server: ScriptedServer, resumeData: ResumeData) {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: after)] + answers])
        servers.add(server)
        let outcome = await manager.download(server.url("/f"), to: path("f")).outcome
        #expect(outcome.error?.code == .truncated)
        return (server, try #require(outcome.resumeData))
    }

    // MARK: Cancelling

    @Test("K14, K15, K16: a cancelled download has one resume data everywhere, and another life goes on with them")
    func cancelled() async throws {
        let server = try slowServer()
        let request = manager.download(server.url("/f"), to: path("f"))
        try await begin(request)
        request.cancel()
        let outcome = await request.outcome
        #expect(outcome.error?.code == .cancelled)
        let resumeData = try #require(request.resumeData)
        #expect(outcome.resumeData == resumeData && outcome.error?.resumeData == resumeData)
        #expect(resumeData.isSelfSufficient && resumeData.path == path("f"))
        let have = resumeData.ranges.contiguousEnd
        #expect(have > 0 && have < 600_100)
        #expect(place.names.map { path($0) } == [try #require(resumeData.partPath)])

        let resumed = try await inAnotherLife(resumeData)
        #expect(resumed.progress.completedBytes == have && resumed.progress.totalBytes == resource.size)
        let file = try await resumed.value
        #expect(file.path == path("f") && resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("range") == "bytes=\(have)-")
        #expect(server.requests()[1].header("if-range") == resource.entityTag)
        #expect((resumed.delegate as? DownloadTaskDelegate)?.resumedAtOffset == have)
        #expect(resumed.progress.transferredBytes == resource.size - have)
        #expect(place.names == ["f"])
    }

    @Test("K14: resume data can be refused, and then nothing stays")
    func refused() async throws {
        let server = try slowServer()
        let request = manager.download(server.url("/f"), to: path("f"))
        try await begin(request)
        request.cancel(keepingBytes: false)
        let outcome = await request.outcome
        #expect(outcome.error?.code == .cancelled && outcome.error?.resumeData == nil)
        #expect(outcome.resumeData == nil && request.resumeData == nil)
        #expect(place.names.isEmpty)
    }

    @Test("K14: nothing stays either where it is refused before the next attempt, or before the first one")
    func refusedBetween() async throws {
        let (_, resumeData) = try await interrupted(then: [.serve(resource)])
        let unstarted = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let second = unstarted.download(resumingWith: resumeData)
        second.cancel(keepingBytes: false)
        #expect(await second.outcome.resumeData == nil)
        #expect(place.names.isEmpty)

        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 300_000), .serve(resource)]])
        let retrier = CountingRetrier(limit: 1, delay: 3_600_000)
        manager.retrier = retrier
        let waiting = manager.download(server.url("/f"), to: path("f"))
        waiting.resume()
        try await eventually(that: "the retrier was asked") { !retrier.asked.withLock { $0.isEmpty } }
        waiting.cancel(keepingBytes: false)
        let outcome = await waiting.outcome
        #expect(outcome.error?.code == .cancelled && outcome.resumeData == nil && outcome.error?.resumeData == nil)
        #expect(place.names.isEmpty)
    }

    @Test("K15: cancelled before it starts, or between two attempts, a request still has its resume data")
    func cancelledBetween() async throws {
        let (server, resumeData) = try await interrupted(then: [.serveThenCut(resource, after: 1), .serve(resource)])
        let retrier = CountingRetrier(limit: 1, delay: 3_600_000)
        let manager = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        manager.retrier = retrier
        let unstarted = manager.download(resumingWith: resumeData)
        unstarted.cancel()
        #expect(await unstarted.outcome.error?.resumeData == resumeData)
        #expect(unstarted.resumeData == resumeData)

        let waiting = manager.download(resumingWith: resumeData)
        waiting.resume()
        try await eventually(that: "the retrier was asked") { !retrier.asked.withLock { $0.isEmpty } }
        waiting.cancel()
        let later = try #require(await waiting.outcome.error?.resumeData)
        #expect(later.ranges.contiguousEnd == 300_001 && waiting.resumeData == later)
        let file = try await inAnotherLife(later).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests().last?.header("range") == "bytes=300001-")
    }

    @Test("a session's task that is cancelled before it runs has the resume data it was given")
    func cancelledTask() async throws {
        let (server, resumeData) = try await interrupted(then: [.serve(resource)])
        let errors = Notes<TransferError?>()
        manager.delegate.taskDidComplete = { _, error in errors.add(error) }
        let task = manager.session.downloadTask(
            with: TransferRequest(url: server.url("/f")), to: .path(path("f")), resumeData: resumeData)
        task.cancel()
        #expect(errors.all.map { $0?.resumeData } == [resumeData])
        #expect(place.names.count == 1)
    }

    @Test("K14: cancelling may wait for the resume data, or be called with them")
    func producing() async throws {
        let server = try slowServer([.drip(resource, after: 1000, bytesPerSecond: 1)])
        let first = manager.download(server.url("/f"), to: path("f"))
        try await begin(first)
        let resumeData = try #require(await first.cancelProducingResumeData())
        let second = manager.download(resumingWith: resumeData)
        second.resume()
        try await eventually(that: "it asks") { server.requests().count == 2 }
        let later = await withCheckedContinuation { continuation in
            second.cancel { continuation.resume(returning: $0) }
        }
        #expect(try #require(later).ranges.contiguousEnd >= resumeData.ranges.contiguousEnd)
    }

    @Test("the Swift task that waits for a file is cancelled, and another life goes on with the error's resume data")
    func structuredCancellation() async throws {
        let server = try slowServer()
        let written = AsyncStream<Void>.makeStream()
        manager.delegate.downloadTaskDidWriteData = { _, _, _, _ in written.continuation.yield() }
        let waiting = Task { [manager] () throws(TransferError) in
            try await manager.download(server.url("/f"), to: path("f")).value
        }
        for await _ in written.stream { break }
        waiting.cancel()
        var resumeData: ResumeData?
        do {
            _ = try await waiting.value
            Issue.record("a file came")
        } catch {
            let error = error as? TransferError
            #expect(error?.code == .cancelled)
            resumeData = error?.resumeData
        }
        #expect(!place.names.contains("f") && place.names.count == 1)
        let resumed = try await inAnotherLife(try #require(resumeData))
        let file = try await resumed.value
        #expect(file.path == path("f") && resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests().count == 2 && server.requests()[1].header("range") != nil)
        #expect(place.names == ["f"])
    }

    @Test("K29: releasing the manager leaves resume data too")
    func released() async throws {
        let server = try slowServer()
        var manager: SessionManager? = try SessionManager(configuration: .test())
        let request = try #require(manager?.download(server.url("/f"), to: path("f")))
        try await begin(request)
        manager = nil
        let resumeData = try #require(await request.outcome.error?.resumeData)
        let file = try await inAnotherLife(resumeData).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    // MARK: Retrying

    @Test("M17: a retry resumes by the strong validator, fetches nothing twice, and the destination is asked once")
    func retried() async throws {
        let server = try ScriptedServer([
            "/f": [
                .serveThenCut(resource, after: 300_000), .status(503), .serveThenCut(resource, after: 300_000),
                .serve(resource),
            ]
        ])
        manager.retrier = CountingRetrier(limit: 5)
        let asked = Notes<Int>()
        let request = manager.download(
            server.url("/f"),
            to: DownloadDestination { [place] _, _ in
                asked.add(0)
                return (place.temporary.file("f-\(asked.all.count)"), [])
            })
        let file = try await request.value
        #expect(file.path == path("f-1") && resource.difference(fromFileAt: file.path) == nil)
        #expect(asked.all.count == 1 && request.retryCount == 3)
        let ranges = server.requests().map { $0.header("range") }
        #expect(ranges == [nil, "bytes=300000-", "bytes=300000-", "bytes=600000-"])
        #expect(server.requests().dropFirst().allSatisfy { $0.header("if-range") == resource.entityTag })
        #expect(server.bodyBytesSent(for: "/f") == resource.size)
        #expect(place.names == ["f-1"])
    }

    private struct Token: RequestAdapter {
        func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
            var request = request
            request.headerFields[.authorization] = "Bearer fresh"
            return request
        }
    }

    @Test("M4: a resumed download is adapted; what proves who asks is not kept, what else was asked is")
    func adapted() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 300_000), .serve(resource)]])
        var wish = TransferRequest(url: server.url("/f"))
        wish.credential = Credential(user: "user-secret", password: "pass-secret")
        wish.headerFields[.authorization] = "Bearer auth-secret"
        wish.headerFields[.cookie] = "session=cookie-secret"
        wish.headerFields[.referer] = "http://from.example/"
        wish.maximumBodySize = 1_000_000
        wish.redirects = .stop
        let first = await manager.download(wish, to: path("f")).outcome
        let resumeData = try #require(first.resumeData)
        #expect(!String(decoding: resumeData.bytes, as: UTF8.self).contains("secret"))
        let kept = try #require(resumeData.request)
        #expect(kept.url == wish.url && kept.credential == nil)
        #expect(kept.headerFields == [.referer: "http://from.example/"])
        #expect(kept.maximumBodySize == 1_000_000 && kept.redirects == .stop)
        let resumed = try await inAnotherLife(resumeData)
        lives.all.first?.adapter = Token()
        #expect(resource.difference(fromFileAt: try await resumed.value.path) == nil)
        #expect(server.requests()[1].header("authorization") == "Bearer fresh")
        #expect(server.requests()[1].header("referer") == "http://from.example/")
        #expect(server.requests()[1].header("cookie") == nil)
    }

    @Test("a proxy is kept without its password")
    func proxy() {
        var wish = TransferRequest(url: "http://h/")
        wish.proxy = "socks5h://user:secret@proxy.example:1080"
        wish.httpVersion = .http2
        let kept = RecordedRequest(wish).request
        #expect(kept.proxy == "socks5h://proxy.example:1080" && kept.httpVersion == .http2)
    }

    // MARK: Other destinations

    @Test("resumed to another place, the part goes along", arguments: ["g", "other/g"])
    func elsewhere(name: String) async throws {
        let (server, resumeData) = try await interrupted(then: [.serve(resource)])
        let request = try await inAnotherLife(
            resumeData, to: .path(path(name), options: .createIntermediateDirectories))
        let file = try await request.value
        #expect(file.path == path(name) && resource.difference(fromFileAt: file.path) == nil)
        #expect(server.bodyBytesSent(for: "/f") == resource.size)
        #expect(place.names.subtracting(["other"]) == [name])
    }

    @Test("resumed to another place and stopped again, the resume data speak of the part's new place")
    func elsewhereAndAgain() async throws {
        let (server, resumeData) = try await interrupted(
            then: [.serveThenCut(resource, after: 300_000), .serve(resource)])
        try place.temporary.makeDirectory("other")
        let again = await manager.download(
            resumingWith: resumeData,
            to: DownloadDestination { [place] temporary, _ in
                (place.temporary.file("other/" + temporary.suggestedName), [])
            }
        ).outcome
        let later = try #require(again.resumeData)
        #expect(later.path == path("other/f") && later.ranges.contiguousEnd == 600_000)
        #expect(place.names.count == 2 && place.names.contains("other"))
        let file = try await inAnotherLife(later).value
        #expect(file.path == path("other/f") && resource.difference(fromFileAt: file.path) == nil)
        #expect(server.bodyBytesSent(for: "/f") == resource.size)
        #expect(place.names == ["other", "other/f"])
    }

    @Test("a place that is taken leaves the part where it is")
    func elsewhereTaken() async throws {
        let (_, resumeData) = try await interrupted(then: [.serve(resource)])
        try place.temporary.makeDirectory("other")
        try place.temporary.write("mine", to: "other/f")
        let outcome = await manager.download(resumingWith: resumeData, to: .path(path("other/f"))).outcome
        #expect(outcome.error?.code == .nameConflict)
        #expect(outcome.resumeData?.path == path("f") && outcome.resumeData?.ranges == resumeData.ranges)
        #expect(try await inAnotherLife(try #require(outcome.resumeData)).value.path == path("f"))
    }

    @Test("onto another file system a part cannot go: everything is fetched anew", .enabled(if: geteuid() == 0))
    func anotherFileSystem() async throws {
        let other = try TemporaryDirectory()
        guard let mount = try? await Mount.tmpfs(at: other.path, bytes: 8 << 20) else { return }
        let (_, resumeData) = try await interrupted(then: [.serve(resource)])
        let file = try await manager.download(resumingWith: resumeData, to: .path(other.file("f"))).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(TemporaryDirectory.names(beneath: other.path) == ["f"])
        #expect(place.names.isEmpty)
        withExtendedLifetime(mount) {}
    }

    @Test("with every byte there nobody is asked, a closure neither: what it said before stands")
    func nothingLeft() async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let isHarmed = Atomic(false)
        manager.delegate.downloadTaskDidReceiveAll = { [place] _ in
            guard isHarmed.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else { return }
            _ = try? place.temporary.write("mine", to: "f")
        }
        let first = await manager.download(server.url("/f"), to: path("f")).outcome
        unlink(path("f"))
        let file = try await manager.download(
            resumingWith: try #require(first.resumeData), to: DownloadDestination { _, _ in ("/nowhere/f", []) }
        ).value
        #expect(file.path == path("f") && resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests().count == 1)
    }

    @Test("a file that was published by a life that ended before it could say so is no conflict")
    func publishedBefore() async throws {
        let (server, resumeData) = try await interrupted(then: [.serve(resource), .serve(resource)])
        _ = try await manager.download(resumingWith: resumeData).value
        let file = try await inAnotherLife(resumeData).value
        #expect(file.path == path("f") && resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests().count == 3)
        #expect(place.names == ["f"])
    }

    // MARK: Discarding

    @Test("discarding removes the part, once, and nothing that only has its name")
    func discarded() async throws {
        let (_, resumeData) = try await interrupted(then: [])
        let part = try #require(resumeData.partPath)
        #expect(try resumeData.discard())
        #expect(place.names.isEmpty)
        #expect(try !resumeData.discard())
        let name = try #require(part.split(separator: "/").last.map(String.init))
        try place.temporary.makeDirectory(name)
        #expect(try !resumeData.discard())
        #expect(place.names == [name])
    }

    @Test("another generation's part is not discarded by older resume data")
    func discardedLate() async throws {
        let (_, resumeData) = try await interrupted(
            then: [.serveThenCut(Resource(size: 900_000, seed: 2), after: 300_000)])
        let newer = await manager.download(resumingWith: resumeData).outcome
        #expect(newer.resumeData?.partPath == resumeData.partPath)
        #expect(try !resumeData.discard())
        #expect(place.names.count == 1)
        #expect(try #require(newer.resumeData).discard())
        #expect(place.names.isEmpty)
    }

    @Test("a part that no resume data speak of any more does not stay behind")
    func litter() async throws {
        // The first byte of the new version never arrives.
        let other = Resource(size: 900_000, seed: 2)
        let (_, resumeData) = try await interrupted(then: [.serveThenCut(other, after: 0)])
        let outcome = await manager.download(resumingWith: resumeData).outcome
        #expect(outcome.error?.code == .truncated && outcome.resumeData == nil)
        #expect(place.names.isEmpty)
    }

    @Test("a part that no resume data speak of any more does not stay behind at another place either")
    func litterElsewhere() async throws {
        let other = Resource(size: 900_000, seed: 2)
        let (_, resumeData) = try await interrupted(then: [.serveThenCut(other, after: 300_000)])
        try place.temporary.makeDirectory("other")
        let outcome = await manager.download(resumingWith: resumeData, to: .path(path("other/f"))).outcome
        #expect(outcome.resumeData?.path == path("other/f"))
        #expect(place.names.count == 2)
        #expect(try #require(outcome.resumeData).discard())
        #expect(place.names == ["other"])
    }

    @Test("an answer that refuses leaves the part and its resume data as they were")
    func refusedAnswer() async throws {
        let (_, resumeData) = try await interrupted(then: [.status(403), .serve(resource)])
        let outcome = await manager.download(resumingWith: resumeData).outcome
        #expect(outcome.error?.httpStatus == 403)
        #expect(outcome.resumeData == resumeData)
        #expect(resource.difference(fromFileAt: try await manager.download(resumingWith: resumeData).value.path) == nil)
    }

    // MARK: Insufficient resume data

    @Test("resume data of a target's do not suffice by themselves; the request says so through its handlers")
    func ofATarget() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 300_000)]])
        let first = await manager.download(TransferRequest(url: server.url("/f")), to: place.target()).outcome
        let resumeData = try #require(first.resumeData)
        #expect(!resumeData.isSelfSufficient && resumeData.path == nil && resumeData.request == nil)
        #expect(await manager.download(resumingWith: resumeData).outcome.error?.code == .invalidRequest)
        #expect(try !resumeData.discard())
        #expect(place.names == [Place.partName])
    }

    @Test("where the part is gone everything is fetched anew")
    func partGone() async throws {
        let (server, resumeData) = try await interrupted(then: [.serve(resource)])
        unlink(try #require(resumeData.partPath))
        let file = try await inAnotherLife(resumeData).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("range") == nil)
    }

    @Test("a part that somebody else put there is none", .enabled(if: geteuid() == 0))
    func foreignPart() async throws {
        let (server, resumeData) = try await interrupted(then: [.serve(resource)])
        chown(try #require(resumeData.partPath), 65534, 65534)
        let file = try await inAnotherLife(resumeData).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("range") == nil)
        #expect(try place.status(of: "f").st_uid == 0)
    }

    @Test("another request may be given; with another URL everything is fetched anew")
    func anotherRequest() async throws {
        let (server, resumeData) = try await interrupted(then: [.serve(resource)])
        var wish = TransferRequest(url: server.url("/f"))
        wish.headerFields[.userAgent] = "other"
        let file = try await manager.download(resumingWith: resumeData, request: wish).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("user-agent") == "other")
        #expect(server.requests()[1].header("range") == "bytes=300000-")
    }
}
