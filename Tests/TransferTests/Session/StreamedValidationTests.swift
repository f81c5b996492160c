import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Validation of responses whose body is read as it arrives")
struct StreamedValidationTests {
    private let manager: SessionManager

    init() throws { manager = try SessionManager(configuration: .test()) }

    private struct Again: RequestRetrier {
        let failures = Notes<Int>()

        func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
            failures.add(error.httpStatus ?? 0)
            return .retry(after: 0)
        }
    }

    private func server() throws -> ScriptedServer {
        try ScriptedServer(["/a": [.status(503, body: "the error page"), .status(200, body: "the body")]])
    }

    @Test("a sequence has no byte of a refused response, and the request is tried again")
    func sequence() async throws {
        let (server, retrier) = (try server(), Again())
        var text = ""
        for try await bytes in manager.request(server.url("/a")).validate().retry(with: retrier).body {
            text += String(decoding: bytes, as: UTF8.self)
        }
        #expect(text == "the body")
        #expect(retrier.failures.all == [503])
    }

    @Test("a closure has no byte of a refused response, and the request is tried again")
    func closure() async throws {
        let (server, retrier) = (try server(), Again())
        let pieces = Notes<String>()
        let request = manager.request(server.url("/a")).validate().retry(with: retrier)
            .stream { pieces.add(String(decoding: $0, as: UTF8.self)) }
        #expect(await request.outcome.error == nil)
        #expect(pieces.all.joined() == "the body")
        #expect(retrier.failures.all == [503])
    }

    @Test("the error of a refused response ends the sequence if nothing tries again")
    func refused() async throws {
        let server = try server()
        let error = await #expect(throws: TransferError.self) {
            for try await bytes in manager.request(server.url("/a")).validate().body {
                Issue.record("bytes of the error page: \(bytes)")
            }
        }
        #expect(error?.httpStatus == 503)
    }

    @Test("a media type that is not accepted ends the sequence before its first byte, unless the body is empty")
    func mediaType() async throws {
        let server = try ScriptedServer([
            "/html": [.status(200, headers: ["Content-Type: text/html"], body: "<p>")],
            "/empty": [.status(200, headers: ["Content-Type: text/html"])],
        ])
        let error = await #expect(throws: TransferError.self) {
            for try await bytes in manager.request(server.url("/html"))
                .validate(contentType: ["application/json"]).body
            {
                Issue.record("bytes of another type: \(bytes)")
            }
        }
        #expect(error?.code == .unacceptableContentType)
        for try await _ in manager.request(server.url("/empty")).validate(contentType: ["application/json"]).body {}
    }

    @Test("a validator is asked once for each response")
    func once() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "the body")]])
        for isRead in [true, false] {
            let calls = Notes<Int>()
            let request = manager.request(server.url("/a")).validate { _, head, _ in
                calls.add(head.status)
                return .success(())
            }
            if isRead { for try await _ in request.body {} }
            #expect(await request.outcome.error == nil)
            #expect(calls.all == [200])
        }
    }

    @Test("without a validator the sequence has whatever the server sent")
    func none() async throws {
        let server = try server()
        var text = ""
        for try await bytes in manager.request(server.url("/a")).body { text += String(decoding: bytes, as: UTF8.self) }
        #expect(text == "the error page")
    }
}
