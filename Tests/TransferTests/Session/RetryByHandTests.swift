import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Further attempts of complete requests")
struct RetryByHandTests {
    private let place: TemporaryDirectory
    private let resource = Resource(size: 4 << 20)

    init() throws { place = try TemporaryDirectory() }

    private func manager(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> SessionManager {
        var configuration = SessionConfiguration.test()
        configuration.checkpointInterval = 256 << 10
        change(&configuration)
        return try SessionManager(configuration: configuration)
    }

    private var file: ResumeDataFile { ResumeDataFile(path: place.file("note")) }

    /// Waits as long as it takes, even if the Swift task is cancelled.
    private static func wait(_ milliseconds: Int) async {
        await Task.detached { try? await Task.sleep(for: .milliseconds(milliseconds)) }.value
    }

    @Test("a request whose end is being announced cannot begin again")
    func duringCompletion() async throws {
        let server = try ScriptedServer(["/a": [.status(500), .status(200, body: "a")]])
        let manager = try manager()
        let request = manager.request(server.url("/a")).validate()
        let results = Notes<Bool>()
        manager.delegate.taskDidComplete = { _, error in
            if error != nil { results.add(request.retry()) }
        }
        #expect(await request.outcome.error?.httpStatus == 500)
        #expect(results.all == [false])
        #expect(manager.session.contents.requests.isEmpty)
        #expect(request.retry())
        #expect(try await request.string == "a")
        #expect(server.requests().count == 2)
    }

    @Test("an adapter of a cancelled attempt that ends late starts no request")
    func lateAdapter() async throws {
        struct Slow: RequestAdapter {
            let calls: Notes<Int>

            func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
                calls.add(1)
                if calls.all.count == 1 { await RetryByHandTests.wait(300) }
                return request
            }
        }
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        let request = manager.request(server.url("/a")).adapt(with: Slow(calls: Notes()))
        request.resume().cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(request.retry())
        #expect(try await request.string == "a")
        await Self.wait(600)
        #expect(server.requests().count == 1)
        #expect(request.delegate.error == nil)
    }

    @Test("a retrier of a cancelled attempt that ends late does not end the next one")
    func lateRetrier() async throws {
        struct Slow: RequestRetrier {
            let calls: Notes<Int>

            func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
                calls.add(1)
                await RetryByHandTests.wait(300)
                return .doNotRetry
            }
        }
        let server = try ScriptedServer(["/a": [.status(500), .drip(Resource(size: 1000), bytesPerSecond: 1000)]])
        let calls = Notes<Int>()
        let manager = try manager()
        let request = manager.request(server.url("/a")).validate().retry(with: Slow(calls: calls)).resume()
        try await eventually(that: "the retrier is asked") { calls.all.count == 1 }
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(request.retry())
        #expect(try await request.value.count == 1000)
    }

    @Test("a further attempt of a download renews and removes its resume data")
    func resumeDataFile() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 2 << 20), .serve(resource)]])
        let manager = try manager()
        let request = manager.download(server.url("/f"), to: place.file("f"), resumeDataFile: file)
        #expect(await request.outcome.error != nil)
        #expect(try file.load() != nil && request.retry())
        _ = try await request.value
        #expect(TemporaryDirectory.names(beneath: place.path) == ["f"])
    }

    @Test("a further attempt of a download has checkpoints, so that a limit for them does not stop it")
    func checkpointLimit() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 1 << 20), .serve(resource)]])
        let manager = try manager { $0.checkpointLimit = 1 << 20 }
        let request = manager.download(server.url("/f"), to: place.file("f")).onCheckpoint { _ in }
        #expect(await request.outcome.error != nil)
        #expect(request.retry())
        try await eventually(that: "the download ends", within: .seconds(20)) { request.delegate.isComplete }
        #expect(try await request.value.size == resource.size)
    }

    @Test("the body of a further attempt is kept, although a reader took the first", arguments: [false, true])
    func readBody(isHeld: Bool) async throws {
        let server = try ScriptedServer(["/a": [.serve(resource)]])
        let manager = try manager()
        let request = manager.request(server.url("/a"))
        let body = request.body
        let iterator = body.makeAsyncIterator()
        while try await iterator.next() != nil {}
        if isHeld { _ = await request.outcome }
        try await eventually(that: "the end is announced, and the request starts again") { request.retry() }
        try await eventually(that: "the request ends", within: .seconds(20)) { request.delegate.isComplete }
        #expect(try await request.value.count == Int(resource.size))
        withExtendedLifetime(iterator) {}
    }

    @Test("a form that a cancelled attempt still encodes does not hold up the next attempt")
    func lateForm() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        let calls = Notes<Int>()
        let request = manager.upload(with: server.url("/a")) { form in
            calls.add(1)
            usleep(calls.all.count == 1 ? 300_000 : 600_000)
            form.append("x", name: "n")
        }.resume()
        try await eventually(that: "the form is encoded") { calls.all.count == 1 }
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(request.retry())
        try await eventually(that: "the request ends", within: .seconds(20)) { request.delegate.isComplete }
        #expect(try await request.string == "a")
        #expect(server.requests().count == 1)
    }

    @Test("resume data survive an attempt that fails before its request")
    func keptByFailures() async throws {
        struct Failing: RequestAdapter {
            func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
                throw TransferError(.invalidRequest, "no token")
            }
        }
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 2 << 20), .status(503), .serveThenCut(resource, after: 0)]
        ])
        let manager = try manager()
        let request = TransferRequest(url: server.url("/f"))
        _ = await manager.download(request, to: place.file("f"), resumeDataFile: file).outcome
        let kept = try #require(try file.load())
        let second = manager.download(request, to: place.file("f"), resumeDataFile: file).adapt(with: Failing())
        #expect(await second.outcome.error != nil)
        #expect(try file.load()?.ranges == kept.ranges)
        #expect(await manager.download(request, to: place.file("f"), resumeDataFile: file).outcome.error != nil)
        #expect(try file.load()?.ranges == kept.ranges)
        #expect(await manager.download(request, to: place.file("f"), resumeDataFile: file).outcome.error != nil)
        #expect(try file.load()?.ranges == kept.ranges)
        let third = manager.download(request, to: place.file("f"), resumeDataFile: file).resume().cancel()
        _ = await third.outcome
        #expect(try file.load()?.ranges == kept.ranges)
        let slow = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let fourth = slow.download(request, to: place.file("f"), resumeDataFile: file)
        fourth.cancel()
        _ = await fourth.outcome
        #expect(try file.load()?.ranges == kept.ranges)
        var down = request
        down.proxy = "http://127.0.0.1:1"
        #expect(await manager.download(down, to: place.file("f"), resumeDataFile: file).outcome.error != nil)
        #expect(try file.load()?.ranges == kept.ranges)
        do {
            let released = try SessionManager(configuration: .test())
            let request = released.download(request, to: place.file("f"), resumeDataFile: file).resume()
            withExtendedLifetime(released) {}
            _ = request
        }
        await Self.wait(300)
        #expect(try file.load() != nil)
    }

    @Test("a file with resume data is private, whatever lies at its temporary name")
    func privacy() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 1 << 20)]])
        let manager = try manager()
        let failed = await manager.download(server.url("/f"), to: place.file("f")).outcome
        let data = try #require(failed.resumeData)
        try place.write("old", to: "other")
        #expect(chmod(place.file("other"), 0o644) == 0)
        #expect(link(place.file("other"), place.file("note.new")) == 0)
        try file.store(data)
        var information = stat()
        #expect(stat(place.file("note"), &information) == 0 && information.st_mode & 0o777 == 0o600)
        #expect(try bytes(ofFileAt: place.file("other")) == Array("old".utf8))
    }

    @Test("time limits as long as can be are none", arguments: [Int64.max, Int64.max - 1, Int64(1) << 53])
    func endlessTime(limit: Int64) async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/f": [.serve(resource)]])
        let manager = try manager()
        var request = TransferRequest(url: server.url("/a"))
        request.timeout = limit
        request.totalTimeout = limit
        #expect(try await manager.request(request).string == "a")
        request.url = server.url("/f").replacing("127.0.0.1", with: "localhost")
        #expect(try await manager.download(request, to: place.file("f")).value.size == resource.size)
        request.url = server.url("/a")
        request.timeout = -limit
        request.totalTimeout = -limit
        _ = await manager.request(request).outcome
    }
}
