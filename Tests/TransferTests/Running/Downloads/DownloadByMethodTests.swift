import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Downloads by other methods than GET")
struct DownloadByMethodTests {
    private let manager: SessionManager
    private let place: TemporaryDirectory

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try TemporaryDirectory()
    }

    @Test("a download by POST, PUT, PATCH or DELETE sends its method", arguments: ["POST", "PUT", "PATCH", "DELETE"])
    func methodIsSent(name: String) async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "made")]])
        let method = try #require(HTTPRequest.Method(name))
        let file = try await manager.download(
            TransferRequest(url: server.url("/f"), method: method), to: place.file(name)
        ).value
        #expect(server.requests().map(\.method) == [name])
        #expect(try bytes(ofFileAt: file.path) == Array("made".utf8))
    }

    @Test("a download by POST sends its parameters as the body, with their content type")
    func parametersAreSent() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "made")]])
        let response = await manager.download(
            server.url("/f"), method: .post, parameters: ["a": 1, "b": "x y"], to: .path(place.file("f"))
        ).outcome
        let request = try #require(server.requests().first)
        #expect(response.error == nil && request.method == "POST")
        #expect(String(decoding: request.body, as: UTF8.self) == "a=1&b=x%20y")
        #expect(request.header("content-type")?.hasPrefix("application/x-www-form-urlencoded") == true)
    }

    @Test("an adapter's change of the method goes out")
    func adaptedMethod() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "made")]])
        manager.adapter = ClosureAdapter { $0.method = .post }
        _ = try await manager.download(server.url("/f"), to: place.file("f")).value
        #expect(server.requests().map(\.method) == ["POST"])
    }

    @Test("a 307 has the body sent again, a 303 is followed by GET", arguments: [307, 303])
    func redirects(status: Int) async throws {
        let server = try ScriptedServer([
            "/f": [.status(status, headers: ["Location: /g"])], "/g": [.status(200, body: "made")],
        ])
        let body = RequestBody.data(Array("wanted".utf8))
        _ = try await manager.download(server.url("/f"), sending: body, to: .path(place.file("f"))).value
        let last = try #require(server.requests(for: "/g").first)
        #expect(last.method == (status == 307 ? "POST" : "GET"))
        #expect(String(decoding: last.body, as: UTF8.self) == (status == 307 ? "wanted" : ""))
    }

    @Test("a broken response to POST is not continued by GET, and leaves no resume data and no part file")
    func brokenResponse() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 300_000), .serve(resource)]])
        let response = await manager.download(
            server.url("/f"), sending: .data([1, 2, 3]), to: .path(place.file("f"))
        ).outcome
        #expect(response.error?.code == .truncated && response.resumeData == nil)
        #expect(server.requests().map(\.method) == ["POST"])
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty)
    }

    @Test("a retry of a download by POST fetches the whole again, where POST may be repeated")
    func retry() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 300_000), .status(503), .serve(resource)]
        ])
        manager.retrier = CountingRetrier(limit: 2, delay: 1)
        let file = try await manager.download(
            server.url("/f"), sending: .data([1, 2, 3]), to: .path(place.file("f"))
        ).value
        #expect(try bytes(ofFileAt: file.path) == resource.bytes(0..<resource.size))
        #expect(server.requests().allSatisfy { $0.method == "POST" && $0.header("range") == nil && $0.body.count == 3 })
    }

    @Test("the standard policy does not repeat a POST that the server may have acted on")
    func retryPolicy() async throws {
        let server = try ScriptedServer(["/f": [.status(500), .status(200, body: "made")]])
        manager.retrier = DefaultRetrier()
        let response = await manager.download(
            server.url("/f"), sending: .data([1]), to: .path(place.file("f"))
        ).outcome
        #expect(response.error?.httpStatus == 500 && server.requests().count == 1)
    }

    @Test("a large response to POST comes over one connection, whatever the server offers")
    func oneConnection() async throws {
        let resource = Resource(size: 24 << 20)
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 16 << 20)]])
        var request = TransferRequest(url: server.url("/f"), method: .post)
        request.segments = .fixed(4)
        _ = try await manager.download(request, sending: .data([1]), to: .path(place.file("f"))).value
        #expect(server.requests().count == 1)
    }

    @Test("HEAD and mirrors are refused with a reason")
    func refusals() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "made")]])
        var request = TransferRequest(url: server.url("/f"), method: .head)
        #expect(await manager.download(request, to: place.file("f")).outcome.error?.code == .invalidRequest)
        request.method = .post
        request.mirrors = [server.url("/g")]
        #expect(await manager.download(request, to: place.file("f")).outcome.error?.code == .invalidRequest)
        #expect(server.requests().isEmpty)
    }

    @Test("resume data are not used for a POST, and their part file is removed")
    func resumeDataOfGet() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 600_000), .serve(resource)]])
        let broken = await manager.download(server.url("/f"), to: place.file("f")).outcome
        let resumeData = try #require(broken.resumeData)
        let request = TransferRequest(url: server.url("/f"), method: .post)
        let file = try await manager.download(resumingWith: resumeData, request: request).value
        #expect(try bytes(ofFileAt: file.path) == resource.bytes(0..<resource.size))
        #expect(server.requests().map(\.method) == ["GET", "POST"] && server.requests()[1].header("range") == nil)
        #expect(TemporaryDirectory.names(beneath: place.path) == ["f"])
    }

    @Test("a data request by POST that becomes a download is not continued by GET")
    func becomesDownload() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 300_000), .serve(resource)]])
        let path = place.file("f")
        manager.delegate.dataTaskDidReceiveResponse = { _, _ in .download(to: .path(path)) }
        let error = await manager.upload(.data([1, 2]), with: server.url("/f")).outcome.error
        #expect(error?.code == .truncated && error?.resumeData == nil)
        #expect(server.requests().map(\.method) == ["POST"])
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty)
    }

    @Test("a 204 or 205 is an empty file where the request says so, and an error otherwise", arguments: [204, 205])
    func emptyResponses(status: Int) async throws {
        let server = try ScriptedServer(["/f": [.status(status)]])
        var request = TransferRequest(url: server.url("/f"))
        let refused = await manager.download(request, to: place.file("f")).outcome
        #expect(refused.error?.httpStatus == status)
        #expect(refused.error?.description.contains("without a file") == true)
        request.emptyResponseCodes = [204, 205]
        let file = try await manager.download(request, to: place.file("f")).validate().value
        #expect(file.size == 0 && TemporaryDirectory.names(beneath: place.path) == ["f"])
    }
}
