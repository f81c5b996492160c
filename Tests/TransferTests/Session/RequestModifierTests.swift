import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Modifiers of requests")
struct RequestModifierTests {
    private struct Own: Error {}

    @Test("a modifier changes every kind of request once, before adapters and after encoding")
    func everyKind() async throws {
        let directory = try TemporaryDirectory()
        let answers = [ScriptedAnswer](repeating: .status(200, body: "abc"), count: 8)
        let server = try ScriptedServer(["/f": answers])
        let manager = try SessionManager(configuration: .test())
        manager.adapter = ClosureAdapter { request in
            request.headerFields[.accept] = request.headerFields[.cookie].map { "adapted \($0)" }
        }
        var count = 0
        func modify(_ request: inout TransferRequest) {
            count += 1
            request.headerFields[.cookie] = "n=\(count)"
        }
        let url = server.url("/f")
        _ = try await manager.request(url) { modify(&$0) }.value
        _ = try await manager.request(TransferRequest(url: url)) { modify(&$0) }.value
        _ = try await manager.request(url, parameters: ["q": 1], modifier: modify).value
        _ = try await manager.download(url, to: directory.file("a"), modifier: modify).value
        _ = try await manager.download(url, to: .path(directory.file("b")), modifier: modify).value
        _ = try await manager.upload(.data([1]), with: url, modifier: modify).value
        _ = try await manager.upload(multipartFormData: MultipartFormData(), with: url, modifier: modify).value
        _ = try await manager.upload(with: url, modifier: modify) { $0.append("text", name: "n") }.value
        #expect(count == 8)
        for (index, request) in server.requests().enumerated() {
            #expect(request.header("cookie") == "n=\(index + 1)")
            #expect(request.header("accept") == "adapted n=\(index + 1)")
        }
    }

    @Test("an error of a modifier arrives at the handlers, and nothing is sent")
    func errors() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        let manager = try SessionManager(configuration: .test())
        let refused = TransferError(.authenticationFailed, "no user")
        let known = await manager.request(server.url("/f")) { _ in throw refused }.outcome.result.error
        #expect(known?.code == .authenticationFailed)
        let other = manager.request(server.url("/f"), method: .put) { _ in throw Own() }
        #expect(other.original == nil)
        let error = await other.outcome.result.error
        #expect(error?.code == .invalidRequest && error?.underlying is Own)
        let download = manager.download(server.url("/f"), to: "/nowhere/file") { _ in throw refused }
        #expect(await download.outcome.result.error?.code == .authenticationFailed)
        let upload = manager.upload(.data([1]), with: server.url("/f")) { _ in throw refused }
        #expect(await upload.outcome.result.error?.code == .authenticationFailed)
        #expect(server.requests().isEmpty)
    }

    @Test("the modifier of a resumed download changes the stored request")
    func resumption() async throws {
        let directory = try TemporaryDirectory()
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 40_000), .serve(resource)]])
        let manager = try SessionManager(configuration: .test())
        let first = await manager.download(server.url("/f"), to: directory.file("a")).outcome
        let data = try #require(first.resumeData)
        let second = manager.download(resumingWith: data) { $0.headerFields[.cookie] = "again=1" }
        _ = try await second.value
        #expect(server.requests().last?.header("cookie") == "again=1")
    }
}
