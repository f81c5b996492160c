import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Responses as text", .timeLimit(.minutes(1)))
struct ResponseDescriptionTests {
    private let server: ScriptedServer
    private let manager: SessionManager

    init() throws {
        server = try ScriptedServer([
            "/a?key=secret1": [
                .status(
                    200,
                    headers: [
                        "Content-Type: text/plain", "Set-Cookie: a=secret2", "Location: https://u:secret3@h/?t=secret4",
                        "Link: <https://u:secret5@h/>; rel=next", "X-Odd: a\u{1B}[2J",
                    ], body: "body secret6")
            ], "/file": [.serve(Resource(size: 12))], "/missing": [.status(404)],
        ])
        manager = try SessionManager(configuration: .test())
    }

    private func request() throws -> DataRequest {
        manager.request(
            server.url("/a?key=secret1"), headers: ["Authorization": "secret7", "Cookie": "secret8", "X-Trace": "9"])
    }

    @Test("print writes the result, with the size of the body and not the body")
    func printed() async throws {
        #expect(await "\(try request().outcome)" == "success: 12 bytes")
        #expect(await "\(try request().serialized(using: DataSerializer()))" == "success: 12 bytes")
        #expect(await "\(try request().serialized(using: StringSerializer()))" == "success: String, 12 bytes")
        let missing = await manager.request(server.url("/missing")).validate().outcome
        #expect("\(missing)" == "failure: there is no such file on the server (404)")
        let streamed = try request().stream { (_: [UInt8]) in }
        #expect(await "\(streamed.outcome)" == "success: no body was kept")
    }

    @Test("debugPrint writes the request, the response, the size, the times and the result, without secrets")
    func debugPrinted() async throws {
        let text = try await request().serialized(using: StringSerializer()).debugDescription
        #expect(!text.contains("secret") && !text.contains("\u{1B}"), "\(text)")
        let lines = text.split(separator: "\n").map(String.init)
        #expect(
            lines.prefix(4) == [
                "[Request]: GET \(server.url("/a?key=…"))", "    Authorization: …", "    Cookie: …", "    X-Trace: 9",
            ])
        #expect(lines.contains { $0.hasPrefix("[Response]: HTTP/1.1 200") })
        for line in [
            "    Content-Type: text/plain", "    Set-Cookie: …", "    Location: https://h/?t=…", "    Link: …",
            "    X-Odd: a [2J", "[Body]: 12 bytes",
        ] {
            #expect(lines.contains(line), "\(line) in \(text)")
        }
        try #require(lines.count > 3)
        #expect(lines[lines.count - 3].hasPrefix("[Timeline]: ") && lines[lines.count - 3].contains("first byte "))
        #expect(lines[lines.count - 2].hasPrefix("[Metrics]: 1 exchange, "))
        #expect(lines[lines.count - 1] == "[Result]: success: String, 12 bytes")
    }

    @Test("a response without a request, head and body says so")
    func invalid() async throws {
        let response = await manager.request("http://h/", headers: ["A b": "c"]).outcome
        #expect(
            response.debugDescription == """
                [Request]: none
                [Response]: none
                [Body]: 0 bytes
                [Timeline]: none
                [Metrics]: 0 exchanges
                [Result]: failure: "A b" is not the name of a header field
                """)
    }

    @Test("the response of a download prints its file, and a failed one the bytes that are kept")
    func downloads() async throws {
        let place = try TemporaryDirectory()
        let path = place.file("file")
        let done = await manager.download(server.url("/file"), to: path).outcome
        #expect("\(done)" == "success: \(path) (12 bytes)" && done.file?.description == "\(path) (12 bytes)")
        let lines = done.debugDescription.split(separator: "\n")
        #expect(lines.first == "[Request]: GET \(server.url("/file"))" && lines.contains("[Body]: \(path) (12 bytes)"))
        let converted = await manager.download(server.url("/file"), to: place.file("other"))
            .serialized(using: DataSerializer())
        #expect("\(converted)" == "success: 12 bytes")
        let failed = await manager.download(server.url("/missing"), to: place.file("none")).outcome
        #expect("\(failed)" == "failure: there is no such file on the server (404)")
        #expect(failed.debugDescription.contains("\n[Body]: no file\n"))
        #expect("\(PublishedFile(path: "/a\nb", size: 1, isVerified: true))" == "/a b (1 byte, verified)")
        let version = ResourceVersion(validator: ResourceValidator(), total: 24)
        let data = ResumeData(
            generation: "secret", resource: "secret", ranges: ByteRangeSet([0..<12]), version: version)
        #expect("\(data)" == "12 of 24 bytes" && data.debugDescription == "12 of 24 bytes")
        let kept = DownloadResponse<PublishedFile>(
            request: nil, head: nil, file: nil, result: .failure(.cancelled), resumeData: data,
            metrics: TransferMetrics())
        #expect(kept.debugDescription.contains("\n[Resume data]: 12 of 24 bytes\n"))
    }

    @Test("the response of a stream prints its result")
    func streams() {
        let request = TransferRequest(url: "tcp://h:1")
        var response = StreamResponse(request: request, result: .success(()), metrics: TransferMetrics())
        #expect("\(response)" == "success: closed on both sides")
        response.result = .failure(TransferError(.cannotConnect, "no\nway"))
        #expect("\(response)" == "failure: no way")
        #expect(response.debugDescription.hasPrefix("[Request]: GET tcp://h:1\n[Timeline]: none\n"))
    }

    @Test("a head prints its status line, with all fields in a debugger")
    func heads() {
        let head = ResponseHead(status: 200, reason: "OK", fields: [.contentType: "text/plain", .setCookie: "secret"])
        #expect("\(head)" == "HTTP/1.1 200 OK")
        #expect(head.debugDescription == "HTTP/1.1 200 OK\n    Content-Type: text/plain\n    Set-Cookie: …")
        #expect("\(ResponseHead(status: 404))" == "HTTP/1.1 404")
    }

    @Test("an error's code prints its name")
    func codes() {
        #expect("\(TransferError.Code.timedOut)" == "timeout")
        #expect(String(reflecting: TransferError(.timedOut, "too late")) == "timeout: too late")
    }
}
