import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

/// httpbin's entity tags have no quotation marks, so nothing of it can be resumed; nginx serves these files.
@Suite("nginx: downloads that are cancelled and resumed", .timeLimit(.minutes(1)))
struct HTTPBinResumeTests {
    private let manager: SessionManager
    private let directory: TemporaryDirectory
    private let nginx: Nginx
    private let resource = Resource(size: 3_000_000)

    init() async throws {
        manager = try SessionManager(configuration: .test())
        directory = try TemporaryDirectory()
        nginx = try await Nginx()
        try nginx.publish(resource, as: "file")
    }

    private var path: String { directory.file("file") }
    private var names: [String] { TemporaryDirectory.names(beneath: directory.path).sorted() }

    /// Starts a download that cannot end soon, and returns it once it has bytes.
    private func begun() async -> DownloadRequest {
        var request = TransferRequest(url: nginx.url("/file"))
        request.segments = .one
        // Not a property of the request: the request that resumes it would have it too.
        manager.startRequestsImmediately = false
        let download = manager.download(request, to: path).limit(to: 100_000)
        manager.startRequestsImmediately = true
        download.resume()
        for await progress in download.progress where progress.completedBytes > 0 { break }
        return download
    }

    @Test("a cancelled download has resume data, and the error and the request have the same")
    func resumeData() async throws {
        let download = await begun()
        let outcome = await download.cancel().outcome
        #expect(outcome.code == .cancelled && outcome.file == nil && !exists(path))
        let data = try #require(outcome.resumeData)
        #expect(data == download.resumeData && data == outcome.error?.resumeData)
        #expect(data.total == resource.size && data.ranges.contiguousEnd > 0)
        #expect(names.count == 1)
    }

    @Test("a download that is resumed fetches only the rest", arguments: [false, true])
    func resumed(afterCoding: Bool) async throws {
        var data = try #require(await begun().cancelProducingResumeData())
        if afterCoding { data = try JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(data)) }
        let have = data.ranges.contiguousEnd
        let second = manager.download(resumingWith: data)
        let file = try await second.value
        #expect(file.path == path && resource.difference(fromFileAt: path) == nil)
        #expect(second.response?.status == 206 && second.progress.transferredBytes == resource.size - have)
        #expect(names == ["file"])
    }

    @Test("a file that has changed on the server is fetched completely")
    func changed() async throws {
        let data = try #require(await begun().cancelProducingResumeData())
        let other = Resource(size: 2_000_000, seed: 2)
        try nginx.publish(other, as: "file")
        _ = try await manager.download(resumingWith: data).value
        #expect(other.difference(fromFileAt: path) == nil && names == ["file"])
    }

    @Test("a download can be resumed to another place")
    func moved() async throws {
        let data = try #require(await begun().cancelProducingResumeData())
        let file = try await manager.download(resumingWith: data, to: .path(directory.file("other"))).value
        #expect(file.path == directory.file("other") && resource.difference(fromFileAt: file.path) == nil)
        #expect(names == ["other"])
    }

    @Test("the closure of a cancellation receives the resume data of the response")
    func completion() async throws {
        let download = await begun()
        let data = await withCheckedContinuation { continuation in
            download.cancel(byProducingResumeData: { continuation.resume(returning: $0) })
        }
        #expect(data != nil && data == download.resumeData)
    }

    @Test("a download can be cancelled without keeping its bytes")
    func discarded() async throws {
        let outcome = await begun().cancel(keepingBytes: false).outcome
        #expect(outcome.code == .cancelled && outcome.resumeData == nil && names.isEmpty)
    }

    @Test("resume data that are discarded leave no file behind")
    func discardedLater() async throws {
        let data = try #require(await begun().cancelProducingResumeData())
        try data.discard()
        #expect(names.isEmpty)
    }

    @Test("a download that is cancelled before it has bytes has no resume data")
    func withoutBytes() async throws {
        let download = manager.download(nginx.url("/file"), to: path)
        #expect(await download.cancelProducingResumeData() == nil && names.isEmpty)
    }

    @Test("a download that is complete has no resume data")
    func complete() async throws {
        let download = manager.download(nginx.url("/file"), to: path)
        _ = try await download.value
        #expect(await download.cancelProducingResumeData() == nil && download.resumeData == nil)
    }

    @Test("a retry resumes with the bytes that were received")
    func retried() async throws {
        let size = resource.size
        let download = await begun()
        let data = try #require(await download.cancelProducingResumeData())
        // The first attempt fails, the second has the bytes of the resume data.
        let port = try FreePort.next()
        let good = nginx.url("/file")
        let attempts = Record<Int>()
        let second = manager.download(resumingWith: data)
            .adapt(
                with: ClosureAdapter { request in
                    attempts.add(1)
                    request.url = attempts.count == 1 ? "http://127.0.0.1:\(port)/file" : good
                }
            )
            .retry(with: LimitedRetrier(1))
        _ = try await second.value
        #expect(resource.difference(fromFileAt: path) == nil && second.retryCount == 1)
        #expect(second.progress.completedBytes == size)
    }
}
