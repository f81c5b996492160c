import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Rows of the engine: what becomes of answers")
struct RowsOfAnswersTests {
    private let manager: SessionManager
    private let place: Place

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try Place()
    }

    @Test("K6: what a validator refuses is a failure like any other for the retrier")
    func validationIsRetried() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "bad"), .status(200, body: "good")]])
        let retrier = CountingRetrier(limit: 3)
        manager.retrier = retrier
        let request = manager.request(server.url("/f")).validate { _, _, data in
            data == Data("good".utf8) ? .success(()) : .failure(TransferError(.validationFailed, "bad"))
        }
        #expect(try await request.string == "good")
        #expect(retrier.asked.withLock { $0.map(\.code) } == [.validationFailed])
    }

    @Test("M7: a broken transfer outranks what validators would say, and so does a cancel")
    func precedence() async throws {
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer([
            "/cut": [.serveThenCut(resource, after: 50_000)], "/slow": [.drip(resource, bytesPerSecond: 20_000)],
        ])
        let judged = Notes<Int>()
        func request(_ path: String) -> DataRequest {
            manager.request(server.url(path)).validate { _, head, _ in
                judged.add(head.status)
                return .failure(TransferError(.validationFailed, "never good enough"))
            }
        }
        #expect(await request("/cut").outcome.error?.code == .truncated)
        let slow = request("/slow").resume()
        try await eventually(that: "bytes come") { slow.progress.completedBytes > 0 }
        slow.cancel()
        #expect(await slow.outcome.error?.code == .cancelled)
        #expect(judged.all.isEmpty)
    }

    @Test("M7: cancelled while its validators are at work, a request is cancelled, and not found wanting")
    func cancelledInValidation() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let retrier = CountingRetrier(limit: 3)
        manager.retrier = retrier
        let request = manager.request(server.url("/f"))
        request.validate { [weak request] _, _, _ in
            request?.cancel()
            return .failure(TransferError(.validationFailed, "wanting"))
        }
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(retrier.asked.withLock { $0.isEmpty })
    }

    @Test(
        "K8: validate() wants 2xx and a type of Accept; an empty body is of every type",
        arguments: [
            (200, "text/plain", "abc", nil, true), (203, "text/plain", "abc", nil, true),
            (300, "text/plain", "abc", nil, false), (404, "text/plain", "abc", nil, false),
            (200, "text/html; charset=utf-8", "abc", "text/*;q=0.8, image/png", true),
            (200, "IMAGE/PNG", "abc", "text/*, image/png", true),
            (200, "application/json", "abc", "text/*, image/png", false),
            (200, "application/json", "", "text/*, image/png", true),
            (200, nil, "abc", "text/plain", false), (200, nil, "abc", "*/*", true), (200, nil, "abc", nil, true),
        ] as [(Int, String?, String, String?, Bool)])
    func validate(status: Int, type: String?, body: String, accept: String?, passes: Bool) async throws {
        let headers = type.map { ["Content-Type: \($0)"] } ?? []
        let server = try ScriptedServer(["/f": [.status(status, headers: headers, body: body)]])
        var asked = TransferRequest(url: server.url("/f"))
        asked.headerFields[.accept] = accept
        #expect(await (manager.request(asked).validate().outcome.error == nil) == passes)
        let download = manager.download(asked, to: place.target()).validate()
        // A download requires a successful status by itself.
        #expect(await (download.outcome.result.error == nil) == passes)
    }

    @Test("M9: a download's type is judged by its head, before a byte of the body is taken")
    func downloadType() async throws {
        let resource = Resource(size: 50_000_000)
        let page = Array("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(resource.size)\r\n\r\n".utf8)
        let server = try RawServer([page + [UInt8](repeating: 0x3C, count: 200_000)])
        let request = manager.download(TransferRequest(url: server.url()), to: place.target())
            .validate(contentType: ["application/zip"])
        #expect(await request.outcome.result.error?.code == .unacceptableContentType)
        #expect(request.progress.completedBytes == 0)
        #expect(place.names.isEmpty)
    }

    @Test("M9: of unknown length and empty, a download is of every type", arguments: ["", "5\r\nhello\r\n"])
    func downloadOfUnknownLength(chunk: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
        let server = try RawServer([Array((head + chunk + "0\r\n\r\n").utf8)])
        let request = manager.download(TransferRequest(url: server.url()), to: place.target())
            .validate(contentType: ["application/zip"])
        #expect(await request.outcome.result.error?.code == (chunk.isEmpty ? nil : .unacceptableContentType))
    }

    @Test(
        "K22: an empty answer is data and text, and JSON only if the status is 204 or 205",
        arguments: [204, 205, 200])
    func empty(status: Int) async throws {
        let server = try ScriptedServer(["/f": [.status(status)]])
        let request = manager.request(server.url("/f")).validate()
        #expect(await request.serialized(using: DataSerializer()).value?.isEmpty == true)
        #expect(await request.serialized(using: StringSerializer()).value?.isEmpty == true)
        #expect(await (request.serialized(using: JSONSerializer()).value == .null) == (status != 200))
        #expect(await request.serialized(using: DecodableSerializer<Int>()).error?.code == .serializationFailed)
        // A request without a serializer succeeds.
        #expect(await request.outcome.error == nil)
    }

    @Test("K21: handlers run in their order, each on the queue that was chosen, and a late one at once")
    func handlers() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let manager = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let notes = Notes<Int>()
        let request = manager.request(server.url("/f"))
        for number in 0..<30 {
            // Inline handlers do not wait for those on other queues to end, only for them to begin.
            request.response(queue: number < 15 ? .inline : .shared) { _ in notes.add(number) }
        }
        request.resume()
        _ = await request.outcome
        try await eventually(that: "all ran") { notes.all.count == 30 }
        #expect(notes.all == Array(0..<30))
        request.responseString(queue: .inline) { notes.add($0.value == "abc" ? 30 : -1) }
        // The thread that ran the others may still be active, and then runs this one too.
        try await eventually(that: "the late one ran") { notes.all.count == 31 }
        #expect(notes.all.last == 30)
    }
}
