import TestSupport
import Testing

@testable import Transfer

@Suite("Mirrors that stand in for a file server")
struct FileServerMirrorTests {
    private let fixture: RemoteFixture
    private let resource = Resource(size: 6 << 20)
    private static let half = 4 << 20

    init() throws {
        fixture = try RemoteFixture { $0.stallTimeout = 3_000 }
    }

    /// Creates a file server that has the file and, if `cut` is set, sends that many bytes of it the first time.
    private func server(cut: Int? = nil) throws -> ScriptedFTPServer {
        var manner = ScriptedFTPServer.Manner(files: ["f": resource.bytes])
        if let cut { manner.cuts = [cut] }
        return try ScriptedFTPServer(manner)
    }

    private func request(_ server: ScriptedFTPServer, mirrors: [ScriptedServer]) -> TransferRequest {
        var request = TransferRequest(url: server.url("/f"))
        request.mirrors = mirrors.map { $0.url("/f") }
        request.segments = .one
        return request
    }

    private func outcome(
        _ request: TransferRequest, knowsDigest: Bool, _ resumeData: ResumeData? = nil
    ) async -> DownloadRequest.Response {
        let target = fixture.place.target(digest: knowsDigest ? sha256(of: resource) : nil)
        return await fixture.manager.download(request, to: target, resumingWith: resumeData).outcome
    }

    @Test("one brings the file where the file server takes nobody in", arguments: [false, true])
    func away(knowsDigest: Bool) async throws {
        let server = try server()
        server.manner.replies["connect"] = "421 too many"
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        let outcome = await outcome(request(server, mirrors: [mirror]), knowsDigest: knowsDigest)
        let file = try outcome.result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(mirror.requests().allSatisfy { $0.header("authorization") == nil })
    }

    @Test("under a digest one goes on with what the file server sent, and without one it is kept for that server")
    func breaksOff() async throws {
        for knowsDigest in [true, false] {
            let server = try server(cut: Self.half)
            let mirror = try ScriptedServer(["/f": [.serve(resource)]])
            let outcome = await outcome(request(server, mirrors: [mirror]), knowsDigest: knowsDigest)
            if knowsDigest {
                let file = try outcome.result.get()
                #expect(resource.difference(fromFileAt: file.path) == nil)
                #expect(mirror.bodyBytesSent(for: "/f") == resource.size - Int64(Self.half))
                try fixture.place.directory.remove("file")
            } else {
                #expect(outcome.result.error?.code == .truncated && mirror.requests().isEmpty)
                #expect(outcome.resumeData?.ranges.contiguousEnd == Int64(Self.half))
            }
        }
        #expect(fixture.restarts.all.isEmpty)
    }

    @Test("what can never be gone on with makes way for the whole from a mirror")
    func gone() async throws {
        let server = try server(cut: Self.half)
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        let request = request(server, mirrors: [mirror])
        let first = await outcome(request, knowsDigest: false)
        server.manner.replies["RETR"] = "550 gone"
        let file = try await outcome(request, knowsDigest: false, first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(mirror.bodyBytesSent(for: "/f") == resource.size)
    }

    @Test("one with another file discards nothing of what the file server sent", arguments: [true, false])
    func anotherFile(sendsRanges: Bool) async throws {
        let server = try server(cut: Self.half)
        let mirror = try ScriptedServer([
            "/f": [sendsRanges ? .serve(Resource(size: 5 << 20, seed: 2)) : .chunked(Resource(size: 6 << 20, seed: 2))]
        ])
        let request = request(server, mirrors: [mirror])
        let first = await outcome(request, knowsDigest: true)
        #expect(first.result.error?.code == .truncated && !mirror.requests().isEmpty)
        #expect(first.resumeData?.ranges.contiguousEnd == Int64(Self.half))
        let file = try await outcome(request, knowsDigest: true, first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.bytesSent < Int(resource.size) + 1 << 20 && fixture.restarts.all.isEmpty)
    }

    @Test("under a digest the file server goes on with what a mirror began")
    func comesBack() async throws {
        let server = try server()
        server.manner.replies["connect"] = "421 too many"
        let mirror = try ScriptedServer(["/f": [.serveThenCut(resource, after: Int64(Self.half)), .status(404)]])
        let request = request(server, mirrors: [mirror])
        let first = await outcome(request, knowsDigest: true)
        #expect(first.resumeData?.ranges.contiguousEnd == Int64(Self.half))
        server.manner.replies["connect"] = nil
        let file = try await outcome(request, knowsDigest: true, first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.bytesSent <= Int(resource.size) - Self.half + 256 << 10 && fixture.restarts.all.isEmpty)
    }

    @Test("a file server that brings another file twice makes way for a mirror")
    func wrongServer() async throws {
        let other = Resource(size: resource.size, seed: 2)
        let server = try ScriptedFTPServer(ScriptedFTPServer.Manner(files: ["f": other.bytes]))
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        fixture.manager.retrier = CountingRetrier(limit: 2)
        let file = try await outcome(request(server, mirrors: [mirror]), knowsDigest: true).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.bytesSent == 2 * Int(resource.size))
    }

    @Test("where no mirror has the file the file server's word counts")
    func nobody() async throws {
        let server = try server()
        server.manner.replies["RETR"] = "550 no such file"
        let mirror = try ScriptedServer([:])
        let error = await outcome(request(server, mirrors: [mirror]), knowsDigest: false).result.error
        #expect(error?.message.contains("550 no such file") == true && mirror.requests().count == 1)
    }

    @Test("a download that is suspended when its file server fails goes on at the mirror once it is resumed")
    func suspended() async throws {
        let server = try server()
        server.manner.replies["EPSV"] = ""
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        let download = fixture.download(request(server, mirrors: [mirror]))
        let outcome = Task { await download.outcome }
        try await eventually(that: "the server is silent") { server.commands.contains { $0.hasPrefix("EPSV") } }
        download.task?.suspend()
        try await eventually(that: "the mirror is asked") { !mirror.requests().isEmpty }
        #expect(download.progress.transferredBytes == 0)
        download.task?.resume()
        let file = try await outcome.value.result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all.isEmpty)
    }
}
