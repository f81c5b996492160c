import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// One test for each statement about the system that the engine follows.
@Suite("TaskDelegate as described: the receiver of one request's callbacks, with its queue")
struct TaskDelegateSystemTests {
    private let manager: SessionManager
    private let place: TemporaryDirectory

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try TemporaryDirectory()
    }

    @Test("the queue is suspended until the task is complete, and then runs its operations in order")
    func queue() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let request = manager.request(server.url("/a"))
        let order = Notes<Int>()
        for number in 0..<20 { request.delegate.queue.addOperation(on: .inline) { order.add(number) } }
        #expect(request.delegate.queue.isSuspended && order.all.isEmpty)
        _ = try await request.value
        #expect(!request.delegate.queue.isSuspended && order.all == Array(0..<20))
        request.delegate.queue.addOperation(on: .inline) { order.add(20) }
        try await eventually(that: "the late operation has run") { order.all.last == 20 }
    }

    @Test("the base has no data; a data task's delegate has")
    func data() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let request = manager.request(server.url("/a"))
        _ = try await request.value
        #expect(request.delegate.data == Data("a".utf8))
        #expect(TaskDelegate().data == nil)
        let download = manager.download(server.url("/a"), to: place.file("a"))
        _ = try await download.value
        #expect(download.delegate.data == nil)
    }

    @Test("a new task resets the error and the time of the response, and counts")
    func reset() async throws {
        let server = try ScriptedServer(["/a": [.status(500), .status(200, body: "a")]])
        let request = manager.request(server.url("/a")).validate()
        #expect(await request.outcome.error?.httpStatus == 500)
        let first = request.delegate.task?.identifier
        #expect(request.delegate.error != nil && request.retry())
        #expect(try await request.string == "a")
        #expect(request.delegate.error == nil && request.delegate.task?.identifier != first)
        #expect(request.retryCount == 1)
    }

    @Test("the time of the first response is a time of the wall clock")
    func initialResponseTime() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let request = manager.request(server.url("/a"))
        #expect(request.delegate.initialResponseTime == nil)
        let before = Date()
        _ = try await request.value
        let time = try #require(request.delegate.initialResponseTime)
        #expect(time >= before.addingTimeInterval(-0.1) && time <= Date().addingTimeInterval(0.1))
    }

    @Test("the metrics of all attempts are collected")
    func metrics() async throws {
        let server = try ScriptedServer(["/a": [.status(500), .status(200)]])
        manager.retrier = CountingRetrier(limit: 1)
        let request = manager.request(server.url("/a")).validate()
        _ = await request.outcome
        #expect(request.delegate.metrics.exchanges.count == 2)
    }

    // MARK: Redirects

    @Test("redirects are followed by default; the closure may change or stop them")
    func redirects() async throws {
        let server = try ScriptedServer([
            "/a": [.redirect("/b")], "/b": [.status(200, body: "b")], "/c": [.status(200, body: "c")],
        ])
        #expect(try await manager.request(server.url("/a")).string == "b")
        let changed = manager.request(server.url("/a"))
        changed.delegate.taskWillPerformHTTPRedirection = { _, _, new in new.redirected(to: server.url("/c")) }
        #expect(try await changed.string == "c")
        let stopped = manager.request(server.url("/a"))
        stopped.delegate.taskWillPerformHTTPRedirection = { _, _, _ in nil }
        #expect(await stopped.outcome.head?.status == 302)
    }

    // MARK: Challenges

    private func challenging(_ count: Int = 1) throws -> ScriptedServer {
        let challenge = ScriptedAnswer.status(401, headers: ["WWW-Authenticate: Basic realm=\"r\""])
        return try ScriptedServer(["/a": Array(repeating: challenge, count: count) + [.status(200, body: "in")]])
    }

    @Test("the closure for challenges decides before the credential")
    func challengeClosure() async throws {
        let server = try challenging()
        let request = manager.request(server.url("/a")).authenticate(user: "wrong", password: "")
        request.delegate.taskDidReceiveChallenge = { _, _ in (.useCredential, Credential(user: "u", password: "p")) }
        #expect(try await request.string == "in")
        #expect(server.requests().last?.header("authorization") == "Basic dTpw")
    }

    @Test("the request's own credential comes before a stored one")
    func ownCredential() async throws {
        let server = try challenging()
        let space = ProtectionSpace(
            host: "127.0.0.1", port: server.port, scheme: "http", realm: "r", method: .basic)
        manager.session.configuration.credentialStorage.set(Credential(user: "stored", password: "s"), for: space)
        _ = try await manager.request(server.url("/a")).authenticate(user: "u", password: "p").string
        #expect(server.requests().last?.header("authorization") == "Basic dTpw")
    }

    @Test("after a first failure the protection space is rejected")
    func rejected() async throws {
        let server = try challenging(5)
        let outcome = await manager.request(server.url("/a")).authenticate(user: "u", password: "p").outcome
        #expect(outcome.head?.status == 401 && server.requests().count == 2)
    }

    @Test("a challenge without a credential is handled by default: the response is the final one")
    func noCredential() async throws {
        let server = try challenging(5)
        #expect(await manager.request(server.url("/a")).outcome.head?.status == 401)
        #expect(server.requests().count == 1)
    }

    // MARK: Bodies

    @Test("a new stream is asked for when a body has to be sent again")
    func newBodyStream() async throws {
        let server = try ScriptedServer([
            "/a": [.status(307, headers: ["Location: /b"])], "/b": [.status(200, body: "b")],
        ])
        @Sendable func stream(_ bytes: [UInt8]) -> BodyStream {
            BodyStream(length: 3) {
                AsyncStream<[UInt8]> { continuation in
                    continuation.yield(bytes)
                    continuation.finish()
                }
            }
        }
        let request = manager.upload(.stream(stream([1, 2, 3])), with: server.url("/a"))
        request.delegate.taskNeedNewBodyStream = { _ in stream([4, 5, 6]) }
        _ = try await request.value
        #expect(server.requests(for: "/a").first?.body == [1, 2, 3])
        #expect(server.requests(for: "/b").first?.body == [4, 5, 6])
    }

    // MARK: Completion

    @Test("without a closure the end records the error and starts the queue")
    func defaultCompletion() async throws {
        let server = try ScriptedServer(["/a": [.status(404)]])
        let request = manager.request(server.url("/a")).validate()
        _ = await request.outcome
        #expect(request.delegate.error?.httpStatus == 404 && !request.delegate.queue.isSuspended)
    }

    @Test("a closure for the end replaces the recording of the error, and the handlers run after it")
    func closureForCompletion() async throws {
        let server = try ScriptedServer(["/a": [.status(404, body: "none")]])
        let ends = Notes<Int?>()
        let request = manager.request(server.url("/a")).validate()
        request.delegate.taskDidCompleteWithError = { task, error in
            ends.add(task == nil ? nil : error?.httpStatus)
        }
        let outcome = await request.outcome
        #expect(ends.all == [404] && outcome.error == nil && outcome.head?.status == 404)
    }

    @Test("the end of a request without an attempt has no task")
    func completionWithoutTask() async {
        let ends = Notes<Bool>()
        let request = manager.request("no URL at all")
        request.delegate.taskDidCompleteWithError = { task, _ in ends.add(task == nil) }
        _ = await request.outcome
        #expect(ends.all.count == 1)
    }

    @Test("resume data come with the error of a download")
    func resumeData() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(Resource(size: 1 << 20), after: 500_000)]])
        let request = manager.download(server.url("/f"), to: place.file("f"))
        let error = await request.outcome.error
        #expect(error?.resumeData != nil)
        #expect((request.delegate as? DownloadTaskDelegate)?.resumeData == error?.resumeData)
    }

    // MARK: Subclasses

    private final class Following: DataTaskDelegate, @unchecked Sendable {
        let seen = Notes<String>()

        override func task(
            _ task: any SessionTask, willPerformHTTPRedirection response: ResponseHead, newRequest: TransferRequest
        ) -> TransferRequest? {
            seen.add("redirect")
            return super.task(task, willPerformHTTPRedirection: response, newRequest: newRequest)
        }

        override func task(_ task: (any SessionTask)?, didCompleteWithError error: TransferError?) {
            seen.add("complete")
            super.task(task, didCompleteWithError: error)
        }
    }

    private final class Maker: SessionDelegate, @unchecked Sendable {
        override func makeDataTaskDelegate() -> DataTaskDelegate { Following() }
    }

    @Test("a subclass of a task's delegate is made by the session's delegate, and sees its request's callbacks")
    func subclass() async throws {
        let server = try ScriptedServer(["/a": [.redirect("/b")], "/b": [.status(200, body: "b")]])
        let manager = try SessionManager(configuration: .test(), delegate: Maker())
        let request = manager.request(server.url("/a"))
        #expect(try await request.string == "b")
        #expect((request.delegate as? Following)?.seen.all == ["redirect", "complete"])
    }
}
