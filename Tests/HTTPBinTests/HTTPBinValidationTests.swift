import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: validation", .timeLimit(.minutes(1)))
struct HTTPBinValidationTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    // MARK: Status

    @Test(
        "a status in the range is accepted",
        arguments: [(200, 200..<300), (204, 200..<300), (299, 200..<300), (404, 404..<405), (500, 200..<600)])
    func acceptedStatus(_ status: Int, _ range: Range<Int>) async throws {
        #expect(await manager.request(client.url("/status/\(status)")).validate(statusCode: range).outcome.error == nil)
    }

    @Test(
        "a status outside of the range fails the request",
        arguments: [
            (200, 201..<300), (300, 200..<300), (404, 200..<300), (404, 405..<500), (500, 0..<500), (200, 0..<0),
        ])
    func refusedStatus(_ status: Int, _ range: Range<Int>) async throws {
        let outcome = await manager.request(client.url("/status/\(status)")).validate(statusCode: range).outcome
        #expect(outcome.code == .httpStatus && outcome.error?.httpStatus == status && outcome.status == status)
        #expect(outcome.error?.origin == "http://127.0.0.1:\(client.server.port)")
    }

    @Test("the accepted statuses may be any collection")
    func collections() async throws {
        let url = client.url("/status/404")
        #expect(await manager.request(url).validate(statusCode: [200, 404]).outcome.error == nil)
        #expect(await manager.request(url).validate(statusCode: Set([404])).outcome.error == nil)
        #expect(await manager.request(url).validate(statusCode: 404...404).outcome.error == nil)
        #expect(await manager.request(url).validate(statusCode: [Int]()).outcome.code == .httpStatus)
    }

    // MARK: Media type

    @Test(
        "a media type that is accepted passes",
        arguments: [
            ("/json", ["application/json"]), ("/json", ["text/plain", "application/json"]),
            ("/json", ["application/*"]),
            ("/json", ["*/json"]), ("/json", ["*/*"]), ("/html", ["text/html"]),
            ("/html", ["text/html; charset=utf-8"]),
            ("/html", ["TEXT/HTML"]), ("/xml", ["application/xml"]), ("/image/png", ["image/*"]),
            ("/robots.txt", ["text/*"]), ("/range/10", ["application/octet-stream"]),
        ])
    func acceptedType(_ path: String, _ types: [String]) async throws {
        #expect(await manager.request(client.url(path)).validate(contentType: types).outcome.error == nil)
    }

    @Test(
        "a media type that is not accepted fails the request",
        arguments: [
            ("/json", ["text/plain"]), ("/json", ["text/*"]), ("/json", ["*/html"]), ("/html", ["application/json"]),
            ("/image/png", ["image/jpeg", "image/webp"]), ("/range/10", ["text/plain"]),
        ])
    func refusedType(_ path: String, _ types: [String]) async throws {
        let outcome = await manager.request(client.url(path)).validate(contentType: types).outcome
        #expect(outcome.code == .unacceptableContentType && outcome.status == 200)
    }

    @Test("an empty body has every type", arguments: [200, 204, 205, 404])
    func emptyBody(_ status: Int) async throws {
        let request = manager.request(client.url("/status/\(status)")).validate(contentType: ["image/png"])
        #expect(await request.outcome.error == nil)
    }

    @Test(
        "if no media type is accepted, only an empty body passes", arguments: [("/status/200", true), ("/json", false)])
    func noTypes(_ path: String, _ passes: Bool) async throws {
        let outcome = await manager.request(client.url(path)).validate(contentType: []).outcome
        #expect(outcome.code == (passes ? nil : .unacceptableContentType))
    }

    // MARK: Without arguments

    @Test(
        "validation without arguments compares the type with the Accept field",
        arguments: [
            ("/json", "application/json", true), ("/json", "text/plain, */*;q=0.1", true),
            ("/json", "text/plain", false),
            ("/html", "text/*", true), ("/image/png", "image/webp, image/png;q=0.5", true), ("/html", "image/*", false),
        ])
    func acceptField(_ path: String, _ accept: String, _ passes: Bool) async throws {
        let outcome = await manager.request(client.request(path, .get, [.accept: accept])).validate().outcome
        #expect(outcome.code == (passes ? nil : .unacceptableContentType))
    }

    @Test(
        "validation without arguments and without an Accept field accepts every type",
        arguments: ["/json", "/image/png"])
    func withoutAccept(_ path: String) async throws {
        #expect(await manager.request(client.url(path)).validate().outcome.error == nil)
    }

    @Test(
        "validation without arguments accepts the statuses from 200 to 299", arguments: [200, 201, 299, 300, 400, 500])
    func defaultStatus(_ status: Int) async throws {
        let outcome = await manager.request(client.url("/status/\(status)")).validate().outcome
        #expect(outcome.error?.httpStatus == (status < 300 ? nil : status))
    }

    // MARK: Several

    @Test("the first validator that refuses decides on the error", arguments: [true, false])
    func first(statusIsFirst: Bool) async throws {
        let request = manager.request(client.url("/status/418"))
        if statusIsFirst {
            request.validate(statusCode: 200..<300).validate(contentType: ["text/csv"])
        } else {
            request.validate(contentType: ["text/csv"]).validate(statusCode: 200..<300)
        }
        #expect(await request.outcome.code == (statusIsFirst ? .httpStatus : .unacceptableContentType))
    }

    @Test("all validators have to accept")
    func all() async throws {
        let request = manager.request(client.url("/json")).validate(statusCode: 200..<300)
            .validate(contentType: ["application/json"])
        #expect(await request.outcome.error == nil)
        #expect(
            await manager.request(client.url("/json")).validate(statusCode: 200..<300).validate(contentType: ["a/b"])
                .outcome.code == .unacceptableContentType)
    }

    @Test("the body of a response that is refused is still there")
    func refusedBody() async throws {
        let outcome = await manager.request(client.url("/status/418")).validate().outcome
        #expect(outcome.data?.isEmpty == false && outcome.value == nil)
    }

    // MARK: Closures

    @Test("a closure sees request, head and body", arguments: ["/json", "/status/404", "/status/204"])
    func closure(_ path: String) async throws {
        let seen = Record<String>()
        let outcome = await manager.request(client.url(path)).validate { request, head, data in
            seen.add("\(request.url) \(head.status) \(data?.count ?? -1)")
            return .success(())
        }.outcome
        #expect(outcome.error == nil)
        #expect(seen.all == ["\(client.url(path)) \(outcome.status ?? 0) \(outcome.data?.count ?? -2)"])
    }

    @Test("an error of a closure is beneath the error of the response")
    func ownError() async throws {
        let outcome = await manager.request(client.url("/json")).validate { _, _, _ in .failure(OwnError(number: 3)) }
            .outcome
        #expect(outcome.code == .validationFailed && outcome.error?.underlying as? OwnError == OwnError(number: 3))
    }

    @Test("an error of the library that a closure returns is the error of the response")
    func libraryError() async throws {
        let error = TransferError(.tooLarge, "too much")
        let outcome = await manager.request(client.url("/json")).validate { _, _, _ in .failure(error) }.outcome
        #expect(outcome.error == error)
    }

    @Test("a closure is asked once for each attempt")
    func attempts() async throws {
        let calls = Record<Int>()
        let request = manager.request(client.url("/status/200")).retry(with: LimitedRetrier(2)).validate { _, head, _ in
            calls.add(head.status)
            return .failure(OwnError())
        }
        #expect(await request.outcome.code == .validationFailed && calls.count == 3)
    }

    @Test("no validator is asked if there is no response")
    func withoutResponse() async throws {
        let port = try FreePort.next()
        let calls = Record<Int>()
        let outcome = await manager.request("http://127.0.0.1:\(port)/").validate { _, head, _ in
            calls.add(head.status)
            return .failure(OwnError())
        }.outcome
        #expect(outcome.code == .cannotConnect && calls.count == 0)
    }

    @Test("validators judge the response at the end of redirects")
    func redirected() async throws {
        let calls = Record<String>()
        _ = await manager.request(client.url("/redirect/2")).validate { request, head, _ in
            calls.add("\(request.url) \(head.status)")
            return .success(())
        }.outcome
        #expect(calls.all == ["\(client.url("/get")) 200"])
    }

    @Test("validators judge a body that is passed on in pieces by its head")
    func streamed() async throws {
        let outcome = await manager.request(client.url("/range/1000")).stream { _ in }
            .validate(contentType: ["text/plain"]).outcome
        #expect(outcome.code == .unacceptableContentType)
    }
}
