import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Header fields as text")
struct HTTPHeadersTests {
    @Test("common fields have their names")
    func commonFields() throws {
        let headers: HTTPHeaders = [
            .accept("application/json"), .acceptCharset("utf-8"), .acceptEncoding("gzip"), .acceptLanguage("de"),
            .authorization(bearer: "t"), .cacheControl("no-cache"), .contentDisposition("inline"),
            .contentEncoding("gzip"), .contentType("text/plain"), .referer("http://h/"), .userAgent("mine/1"),
            HTTPHeader(name: "X-A", value: "b"),
        ]
        let fields = try HTTPFields(headers)
        #expect(
            fields.map { "\($0.name): \($0.value)" } == [
                "Accept: application/json", "Accept-Charset: utf-8", "Accept-Encoding: gzip", "Accept-Language: de",
                "Authorization: Bearer t", "Cache-Control: no-cache", "Content-Disposition: inline",
                "Content-Encoding: gzip", "Content-Type: text/plain", "Referer: http://h/", "User-Agent: mine/1",
                "X-A: b",
            ])
        #expect(HTTPHeader.authorization("Own x").value == "Own x")
        let basic = HTTPHeader.authorization(user: "Aladdin", password: "open sesame")
        #expect(basic.value == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    }

    @Test("names are equivalent in any letter case, and the last value of a literal is used")
    func names() throws {
        var headers: HTTPHeaders = ["X-A": "1", "x-b": "2", "x-a": "3"]
        #expect(headers.map(\.name) == ["x-a", "x-b"] && headers["X-A"] == "3")
        headers["X-B"] = "4"
        #expect(headers["x-b"] == "4" && headers.count == 2)
        headers.add(name: "x-B", value: "5")
        #expect(headers.map(\.value) == ["3", "4", "5"] && headers["X-B"] == "4")
        headers.set(HTTPHeader(name: "X-B", value: "6"))
        #expect(headers.map(\.value) == ["3", "6"])
        headers["x-a"] = nil
        headers.remove("X-b")
        #expect(headers.isEmpty)
        #expect(HTTPHeaders(["b": "2", "a": "1"]).map(\.name) == ["a", "b"])
    }

    @Test("fields of swift-http-types are taken over, several of one name too")
    func conversion() throws {
        var fields: HTTPFields = [.accept: "a"]
        fields.append(HTTPField(name: .accept, value: "b"))
        #expect(try HTTPFields(HTTPHeaders(fields)) == fields)
    }

    @Test(
        "a name or value that HTTP does not permit is an error that names the field and omits the value",
        arguments: [
            (HTTPHeader(name: "X A", value: "secret"), "\"X A\" is not"),
            (HTTPHeader(name: "", value: "secret"), "\"\" is not"),
            (HTTPHeader(name: "X-A: b\r\nX-B", value: "secret"), "is not the name"),
            (HTTPHeader(name: ":path", value: "secret"), "\":path\" is not"),
            (HTTPHeader(name: "X-A", value: "secret\r\nX-B: c"), "X-A"),
            (HTTPHeader(name: "X-A", value: "secret\nX-B: c"), "X-A"),
            (HTTPHeader(name: "X-A", value: "secret\u{0}"), "X-A"),
            (.authorization(user: "a:b", password: "secret"), "Authorization"),
            (.authorization(bearer: "secret\n"), "Authorization"),
        ])
    func invalidFields(header: HTTPHeader, words: String) throws {
        let error = #expect(throws: TransferError.self) { try HTTPFields([header] as HTTPHeaders) }
        #expect(error?.code == .invalidRequest && error?.message.contains(words) == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("secret") == false && error?.message.contains("\n") == false)
    }

    @Test("a description omits secrets")
    func description() {
        let headers: HTTPHeaders = ["Accept": "text/plain", "Authorization": "Bearer secret", "not a name": "secret"]
        #expect(headers.description == "Accept: text/plain\nAuthorization: …\nnot a name: …")
    }

    @Test("requests take fields as literals of both kinds, and fail for invalid ones", .timeLimit(.minutes(1)))
    func requests() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "x")], "/f?a=1": [.status(200, body: "x")]])
        let (manager, url) = (try SessionManager(configuration: .test()), server.url("/f"))
        let named = "X-Variable"
        #expect(try await manager.request(url, headers: [named: "b"]).string == "x")
        #expect(try await manager.request(url, headers: [.accept("text/plain"), .userAgent("u")]).string == "x")
        #expect(try await manager.request(url, headers: [.accept: "text/html"]).string == "x")
        #expect(try await manager.request(url, headers: [:]).string == "x")
        #expect(try await manager.request(url, parameters: ["a": 1], headers: ["X-A": "c"]).string == "x")
        let requests = server.requests()
        #expect(requests.map { $0.header("x-variable") } == ["b", nil, nil, nil, nil])
        #expect(requests.map { $0.header("accept") } == ["*/*", "text/plain", "text/html", "*/*", "*/*"])
        #expect(requests[1].header("user-agent") == "u" && requests[4].header("x-a") == "c")

        let refused = await manager.request(url, headers: ["X-A": "b\r\nX-B: c"]).outcome
        #expect(refused.error?.code == .invalidRequest && refused.error?.message.contains("X-A") == true)
        let place = try Place()
        let path = place.temporary.file("file")
        _ = try await manager.download(url, headers: ["X-A": "d"], to: .path(path)).value
        #expect(server.requests().last?.header("x-a") == "d")
        let failed = await manager.download(url, headers: ["X A": ""], to: .path(path)).outcome
        #expect(failed.error?.code == .invalidRequest)
        #expect(server.requests().count == 6)
    }

    @Test("uploads take a method and fields", .timeLimit(.minutes(1)))
    func uploads() async throws {
        let server = try ScriptedServer(["/u": [.status(200)]])
        let (manager, url) = (try SessionManager(configuration: .test()), server.url("/u"))
        _ = try await manager.upload(.data([1, 2]), to: url, method: .put, headers: ["X-A": "b"]).value
        let last = try #require(server.requests().last)
        #expect(last.method == "PUT" && last.body == [1, 2] && last.header("x-a") == "b")
        #expect(await manager.upload(.data([1]), to: url, headers: ["X": "\n"]).outcome.error?.code == .invalidRequest)
    }

    @Test("the description of fields shows no secret values")
    func descriptions() {
        let headers: HTTPHeaders = [.authorization(bearerToken: "hidden"), .accept("text/plain")]
        #expect(!"\(headers)".contains("hidden"))
        #expect("\(headers)".contains("Accept: text/plain"))
        #expect("\(HTTPHeader(name: "Cookie", value: "id=hidden"))".hasPrefix("Cookie: "))
        #expect(!"\(HTTPHeader(name: "Cookie", value: "id=hidden"))".contains("hidden"))
    }
}
