import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("Call sites of programs that were written for Alamofire", .timeLimit(.minutes(1)))
struct AlamofireCallSitesTests {
    private struct Login: Codable, Sendable, Equatable { var name = "ada" }

    private let place: TemporaryDirectory
    private let server: ScriptedServer
    private let manager: SessionManager

    init() throws {
        place = try TemporaryDirectory()
        server = try ScriptedServer(["/p": [.status(200, body: #"{"name": "ada"}"#)]])
        manager = try SessionManager(configuration: SessionConfiguration())
    }

    @Test("methods, encoders and encodings have their names")
    func encoders() async throws {
        let (url, login, method) = (server.url("/p"), Login(), HTTPMethod.put)
        _ = try await manager.request(
            url, method: .post, parameters: login, encoder: JSONParameterEncoder.default,
            headers: [.authorization(bearerToken: "t")]
        ).validate().decoded(as: Login.self)
        _ = try await manager.request(
            url, method: method, parameters: ["name": "ada"], encoder: URLEncodedFormParameterEncoder.default
        ).data
        _ = try await manager.request(url, method: .post, parameters: ["a": 1], encoding: JSONEncoding.default).data
        _ = try await manager.request(url, method: .post, parameters: ["a": 1], encoding: JSONEncoding.prettyPrinted)
            .data
        _ = try await manager.request(url, parameters: ["a": 1], encoding: URLEncoding.default).data
        _ = try await manager.request(url, method: .post, parameters: ["a": 1], encoding: URLEncoding.queryString).data
        _ = try await manager.request(url, method: .delete, parameters: ["a": 1], encoding: URLEncoding.httpBody).data
        let requests = server.requests()
        #expect(
            requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                #"{"name":"ada"}"#, "name=ada", #"{"a":1}"#, "{\n  \"a\": 1\n}", "", "", "a=1",
            ])
        #expect(requests.map(\.method) == ["POST", "PUT", "POST", "POST", "GET", "POST", "DELETE"])
        #expect(requests.map(\.path) == ["/p", "/p", "/p", "/p", "/p?a=1", "/p?a=1", "/p"])
        #expect(requests.first?.header("authorization") == "Bearer t")
    }

    @Test("header fields have their names")
    func headers() {
        let headers: HTTPHeaders = [
            .authorization(username: "Aladdin", password: "open sesame"), .contentType("text/plain"),
            .userAgent("mine/1"), .acceptLanguage("de"),
        ]
        #expect(
            headers.map(\.value) == ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "text/plain", "mine/1", "de"])
        #expect(HTTPHeader.authorization(bearerToken: "t") == .authorization(bearer: "t"))
    }

    @Test("a dictionary in a variable becomes header fields")
    func dictionary() async throws {
        let fields = ["X-Trace": "7", "X-Part": "1"]
        _ = try await manager.request(server.url("/p"), headers: HTTPHeaders(fields)).data
        #expect(server.requests().first?.header("x-trace") == "7")
        #expect(server.requests().first?.header("x-part") == "1")
    }

    @Test("a destination is a closure that returns a file URL and options")
    func destinations() async throws {
        let folder = URL(filePath: place.path)
        let destination: DownloadRequest.DownloadFileDestination = { _, _ in
            let file = folder.appending(path: "new").appending(path: "a b")
            return (file, [.removePreviousFile, .createIntermediateDirectories])
        }
        let url = server.url("/p")
        #expect(try await manager.download(url, to: destination).value.path == place.file("new/a b"))
        #expect(try await manager.download(url, to: destination).value.path == place.file("new/a b"))
        let closure = manager.download(url) { temporary, head in
            (folder.appending(path: "\(temporary.suggestedName)-\(head.status)"), [])
        }
        #expect(try await closure.value.path == place.file("p-200"))
        let steps = manager.download(url) { temporary, _ in
            let name = temporary.suggestedName + "2"
            return (destinationURL: folder.appending(path: name), options: [])
        }
        #expect(try await steps.value.path == place.file("p2"))
        let value = DownloadDestination { _, _ in (folder.appending(path: "third"), []) }
        #expect(try await manager.download(url, to: value).value.path == place.file("third"))
        let kept = try await manager.download(url) { temporary, _ in (temporary.url, []) }.value
        #expect(kept.path.hasPrefix(FileManager.default.temporaryDirectory.path(percentEncoded: false)))
        try FileManager.default.removeItem(atPath: kept.path)
    }

    @Test("a closure that returns a path is one of paths, also with several statements")
    func paths() async throws {
        let (url, place) = (server.url("/p"), place)
        let first = manager.download(url) { temporary, _ in (place.file(temporary.suggestedName), []) }
        #expect(try await first.value.path == place.file("p"))
        let second = manager.download(url) { temporary, _ in
            let name = temporary.suggestedName + "2"
            return (place.file(name), [.removePreviousFile])
        }
        #expect(try await second.value.path == place.file("p2"))
    }

    @Test("a destination that is no file URL fails the download before a byte is received")
    func otherSchemes() async throws {
        let other = try #require(URL(string: "https://h/file"))
        let error = await manager.download(server.url("/p")) { _, _ in (other, []) }.outcome.error
        #expect(error?.code == .pathNotAllowed)
        #expect(await manager.download(server.url("/p"), to: other).outcome.error?.code == .pathNotAllowed)
    }
}
