import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Header fields of requests and responses by text")
struct TransferRequestHeadersTests {
    @Test("fields set as text are those of the request, and the other way round")
    func valid() {
        var request = TransferRequest(url: "http://h/", headerFields: [.accept: "text/plain"])
        #expect(request.headers["accept"] == "text/plain")
        request.headers["X-Trace"] = "7"
        request.headers.add(name: "X-Trace", value: "8")
        request.headers["Accept"] = nil
        #expect(request.headerFields.map { "\($0.name): \($0.value)" } == ["X-Trace: 7", "X-Trace: 8"])
        request.headers = ["X-A": "b"]
        #expect(request.headerFields.count == 1 && request.headers == ["X-A": "b"])
    }

    @Test(
        "a field that HTTP does not permit fails the request as it does as an argument, unless it is removed",
        arguments: [("A b", "c"), ("", "c"), ("X-A", "b\r\nX-Forged: 1"), ("X-A", " b"), ("X-A", "\0")])
    func invalid(name: String, value: String) async throws {
        let server = try ScriptedServer(["/a": [.status(200)]])
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: server.url("/a"))
        request.headers["X-Good"] = "1"
        request.headers[name] = value
        #expect(request.headers[name] == value && request.headerFields.count == 1)
        let expected = await manager.request(server.url("/a"), headers: [name: value]).outcome.error
        let made = manager.request(request)
        #expect(made.original == nil)
        #expect(await made.outcome.error == expected && expected?.code == .invalidRequest)
        #expect(await manager.upload(.data([1]), with: request).outcome.error == expected)
        #expect(await manager.download(request).outcome.error == expected)
        #expect(server.requests().isEmpty)
        request.headers[name] = nil
        #expect(await manager.request(request).outcome.error == nil)
    }

    @Test("a field without a value for a reason of its own fails the request with that reason")
    func refused() async throws {
        var request = TransferRequest(url: "http://127.0.0.1:9/")
        request.headers.set(.authorization(user: "a:b", password: "c"))
        request.headers["X-A"] = "1"
        let error = try await SessionManager(configuration: .test()).request(request).outcome.error
        #expect(error?.code == .invalidRequest && error?.message.contains("Basic") == true)
    }

    @Test("a field that an adapter sets fails the request too", arguments: [false, true])
    func adapted(isDownload: Bool) async throws {
        let server = try ScriptedServer(["/a": [.status(200)]])
        let manager = try SessionManager(configuration: .test())
        manager.adapter = ClosureAdapter { $0.headers["A b"] = "c" }
        let error =
            isDownload
            ? await manager.download(server.url("/a")).outcome.error
            : await manager.request(server.url("/a")).outcome.error
        #expect(error?.code == .invalidRequest && error?.message.contains("A b") == true)
        #expect(server.requests().isEmpty)
    }

    @Test("the fields of a response are available as text")
    func response() {
        let head = ResponseHead(status: 200, fields: [.eTag: "\"a\"", .server: "x"])
        #expect(head.headers["etag"] == "\"a\"" && head.headers.map(\.name) == ["ETag", "Server"])
        let name = "e" + "tag"
        #expect(head.value(of: name) == "\"a\"" && head.value(of: "etag") == "\"a\"")
    }
}
