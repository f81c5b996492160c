import Dispatch
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

/// One test for each statement about the systems that the engine follows.
@Suite("DataTaskDelegate as described")
struct DataTaskDelegateSystemTests {
    private let manager: SessionManager

    init() throws { manager = try SessionManager(configuration: .test()) }

    private func delegate(of request: DataRequest) throws -> DataTaskDelegate {
        try #require(request.delegate as? DataTaskDelegate)
    }

    @Test("with a data stream the data go to it, and none are kept")
    func dataStream() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "abc")]])
        let request = manager.request(server.url("/a"))
        let pieces = Notes<[UInt8]>()
        try delegate(of: request).dataStream = { pieces.add($0) }
        _ = await request.outcome
        #expect(request.delegate.data == nil && pieces.all.joined().elementsEqual(Array("abc".utf8)))
    }

    @Test("the progress counts received bytes up to the expected length")
    func progress() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "abc")]])
        let request = manager.request(server.url("/a"))
        _ = try await request.value
        let delegate = try delegate(of: request)
        #expect(delegate.progress.completedBytes == 3 && delegate.progress.totalBytes == 3)
        #expect(delegate.bytesReceived == 3 && delegate.expectedContentLength == 3)
    }

    @Test("the progress handler is called on its queue, and a new one replaces it")
    func progressHandler() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "abc")]])
        let request = manager.request(server.url("/a"))
        let (first, second) = (Notes<Int64>(), Notes<Int64>())
        let delegate = try delegate(of: request)
        delegate.progressHandler = ({ first.add($0.completedBytes) }, .inline)
        delegate.progressHandler = ({ second.add($0.completedBytes) }, .dispatch(.init(label: "progress")))
        _ = try await request.value
        #expect(!first.all.contains(3) && second.all.last == 3 && delegate.progressHandler != nil)
    }

    @Test("a retry begins with no data and no bytes counted")
    func reset() async throws {
        let server = try ScriptedServer(["/a": [.status(500, body: "a long failure"), .status(200, body: "ok")]])
        manager.retrier = CountingRetrier(limit: 1)
        let request = manager.request(server.url("/a")).validate()
        #expect(try await request.string == "ok")
        #expect(try delegate(of: request).bytesReceived == 2)
    }
}

@Suite("DownloadTaskDelegate as described")
struct DownloadTaskDelegateSystemTests {
    private let manager: SessionManager
    private let place: TemporaryDirectory

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try TemporaryDirectory()
    }

    private func delegate(of request: DownloadRequest) throws -> DownloadTaskDelegate {
        try #require(request.delegate as? DownloadTaskDelegate)
    }

    @Test("it knows the destination, the temporary and the final place")
    func places() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 500_000), .serve(resource)]])
        let request = manager.download(server.url("/f"), to: place.file("f"))
        _ = await request.outcome
        let delegate = try delegate(of: request)
        #expect(delegate.temporaryPath?.hasPrefix(place.path) == true && delegate.finalPath == place.file("f"))
        #expect(delegate.destination != nil && request.retry())
        #expect(try await request.value.path == place.file("f"))
        #expect(delegate.file?.path == place.file("f"))
    }

    @Test("a resumed download says where it went on, and its progress starts there")
    func resumedOffset() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 500_000), .serve(resource)]])
        let broken = await manager.download(server.url("/f"), to: place.file("f")).outcome
        let resumeData = try #require(broken.resumeData)
        let request = manager.download(resumingWith: resumeData)
        #expect(request.progress.completedBytes == resumeData.ranges.count)
        _ = try await request.value
        #expect(try delegate(of: request).resumedAtOffset == resumeData.ranges.count)
    }

    @Test("cancelling a task produces resume data, when the task is complete")
    func cancellation() async throws {
        let resource = Resource(size: 4 << 20)
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: 1 << 20, bytesPerSecond: 1000), .serve(resource)]
        ])
        let request = manager.download(server.url("/f"), to: place.file("f")).resume()
        try await eventually(that: "bytes were written") { request.progress.completedBytes >= 256 << 10 }
        let task = try #require(request.task as? DownloadTask)
        let resumeData = await withCheckedContinuation { done in
            task.cancel(byProducingResumeData: { done.resume(returning: $0) })
        }
        #expect(task.state == .completed && resumeData != nil)
        let again = await withCheckedContinuation { done in
            task.cancel(byProducingResumeData: { done.resume(returning: $0) })
        }
        #expect(again == resumeData)
        let file = try await manager.download(resumingWith: try #require(resumeData)).value
        #expect(try bytes(ofFileAt: file.path) == resource.bytes(0..<resource.size))
    }

    @Test("cancelling a request produces resume data")
    func cancellationOfRequest() async throws {
        let server = try ScriptedServer(["/f": [.drip(Resource(size: 4 << 20), after: 1 << 20, bytesPerSecond: 1000)]])
        let request = manager.download(server.url("/f"), to: place.file("f")).resume()
        try await eventually(that: "bytes were written") { request.progress.completedBytes >= 256 << 10 }
        let resumeData = await withCheckedContinuation { done in
            request.cancel(byProducingResumeData: { done.resume(returning: $0) })
        }
        #expect(resumeData != nil && resumeData == request.resumeData)
    }

    @Test("the file is available as data, text, JSON and as a type")
    func serializers() async throws {
        struct Person: Decodable, Equatable, Sendable { var name: String }
        let text = #"{"name":"Ada"}"#
        let server = try ScriptedServer(["/f": [.status(200, headers: ["Content-Type: application/json"], body: text)]])
        func download() -> DownloadRequest {
            manager.download(server.url("/f"), to: .path(place.file("f"), options: .removePreviousFile))
        }
        #expect(try await download().data == Data(text.utf8))
        #expect(try await download().string == text)
        #expect(try await download().decoded(as: Person.self) == Person(name: "Ada"))
        #expect(await download().serialized(using: JSONSerializer()).value?["name"] == .string("Ada"))
        let seen = Notes<String>()
        let request = download()
            .responseData(queue: .inline) { seen.add("\($0.value?.count ?? 0)") }
            .responseString(queue: .inline) { seen.add($0.value ?? "") }
            .responseJSON(queue: .inline) { seen.add("\($0.value?["name"] == .string("Ada"))") }
            .responseDecodable(of: Person.self, queue: .inline) { seen.add($0.value?.name ?? "") }
        await request.completion()
        #expect(seen.all == ["\(text.utf8.count)", text, "true", "Ada"])
    }

    @Test("a file that is too large for memory is not read, and stays")
    func largeFile() async throws {
        var configuration = SessionConfiguration.test()
        configuration.maximumCollectedBytes = 1000
        let manager = try SessionManager(configuration: configuration)
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 5000))]])
        let response = await manager.download(server.url("/f"), to: place.file("f")).serialized(using: DataSerializer())
        #expect(response.error?.code == .tooLarge && response.file?.size == 5000)
    }

    @Test("a download's digest is given in one line, and a wrong file is not published")
    func digest() async throws {
        let resource = Resource(size: 50_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let digest = sha256(of: resource)
        let file = try await manager.download(
            server.url("/f"), to: place.file("f"), digest: .sha256(digest.hex.uppercased())
        ).value
        #expect(file.isVerified)
        let wrong = await manager.download(
            server.url("/f"), to: place.file("g"), digest: .sha256(String(repeating: "0", count: 64))
        ).outcome
        #expect(wrong.error?.code == .checksumMismatch)
        let invalid = await manager.download(server.url("/f"), to: place.file("g"), digest: .sha256("abc")).outcome
        #expect(invalid.error?.code == .invalidRequest)
        #expect(TemporaryDirectory.names(beneath: place.path) == ["f"])
    }
}

@Suite("UploadTaskDelegate as described")
struct UploadTaskDelegateSystemTests {
    @Test("upload progress stands beside the response's, each with a handler of its own")
    func progress() async throws {
        let manager = try SessionManager(configuration: .test())
        let server = try ScriptedServer(["/a": [.status(200, body: "thanks")]])
        let request = manager.upload(.data([UInt8](repeating: 1, count: 5000)), with: server.url("/a"))
        let delegate = try #require(request.delegate as? UploadTaskDelegate)
        let (sent, received) = (Notes<Int64>(), Notes<Int64>())
        delegate.uploadProgressHandler = ({ sent.add($0.completedBytes) }, .inline)
        delegate.progressHandler = ({ received.add($0.completedBytes) }, .inline)
        #expect(try await request.string == "thanks")
        #expect(sent.all.last == 5000 && received.all.last == 6)
        #expect(delegate.uploadProgress.completedBytes == 5000 && delegate.bytesReceived == 6)
    }
}
