import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Parameters of Encodable types")
struct ParameterEncoderTests {
    private struct Login: Encodable, Sendable {
        var name = "Ada L."
        var isAdmin = true
        var roles = ["a", "b"]
        var address = Address()
        var note: String?
        var ratio: Float = 0.1
        var serial = UInt64.max

        struct Address: Encodable, Sendable {
            var city = "Lon/don"
            var zip = 7
        }
    }

    private func form(
        _ parameters: some Encodable & Sendable,
        _ encoder: URLEncodedFormParameterEncoder = URLEncodedFormParameterEncoder()
    ) throws(TransferError) -> String {
        let encoded = try encoder.encode(parameters, into: TransferRequest(url: "http://h/p", method: .post))
        return encoded.body.map { String(decoding: $0, as: UTF8.self) } ?? encoded.request.url
    }

    @Test("a form has the names, arrays, Booleans and spaces of the URL encoding")
    func rules() throws {
        let parameters: Parameters = [
            "name": "Ada L.", "isAdmin": true, "roles": ["a", "b"], "address": ["city": "Lon/don", "zip": 7],
            "ratio": 0.1, "serial": "18446744073709551615",
        ]
        let encodings = [
            URLEncoding(), URLEncoding(destination: .queryString),
            URLEncoding(arrayEncoding: .noBrackets, boolEncoding: .literal),
            URLEncoding(arrayEncoding: .indexInBrackets),
        ]
        for encoding in encodings {
            let request = TransferRequest(url: "http://h/p?q=1#f", method: .post)
            let encoder: any ParameterEncoder = .urlEncodedForm(encoding: encoding)
            let (ours, theirs) = (
                try encoder.encode(Login(), into: request), try encoding.encode(request, with: parameters)
            )
            #expect(ours.body == theirs.body && ours.request.url == theirs.request.url)
            #expect(ours.request.headerFields == theirs.request.headerFields)
        }
    }

    @Test("GET, HEAD and DELETE have the pairs in their query", arguments: ["GET", "HEAD", "DELETE", "POST", "PUT"])
    func places(name: String) throws {
        let method = try #require(HTTPRequest.Method(name))
        let encoded = try URLEncodedFormParameterEncoder().encode(
            ["a": "b c"], into: TransferRequest(url: "http://h/p", method: method))
        let isQuery = ["GET", "HEAD", "DELETE"].contains(name)
        #expect(encoded.request.url == (isQuery ? "http://h/p?a=b%20c" : "http://h/p"))
        #expect(encoded.body == (isQuery ? nil : Array("a=b%20c".utf8)))
    }

    @Test("types of Foundation are text in a form")
    func foundationTypes() throws {
        let date = Date(timeIntervalSince1970: 1_700_000_000)
        #expect(try form(["d": date]) == "d=721692800.0")
        #expect(try form(["d": date], .urlEncodedForm(dateEncoding: .secondsSince1970)) == "d=1700000000")
        #expect(try form(["d": date], .urlEncodedForm(dateEncoding: .millisecondsSince1970)) == "d=1700000000000")
        #expect(
            try form(["d": [date]], .urlEncodedForm(dateEncoding: .iso8601)) == "d%5B%5D=2023-11-14T22%3A13%3A20Z")
        #expect(try form(["b": Data([0, 255])]) == "b=AP8%3D")
        let url = try #require(URL(string: "http://h/"))
        #expect(try form(["u": url]) == "u=http%3A%2F%2Fh%2F")
        #expect(try form(["n": Decimal(string: "0.10")]) == "n=0.1")
    }

    private final class Custom: Encodable, Sendable {
        private enum Key: CodingKey { case list, inner, nothing, parent }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            try list.encode(1)
            try list.encodeNil()
            var pair = list.nestedContainer(keyedBy: Key.self)
            try pair.encode(true, forKey: .inner)
            var row = list.nestedUnkeyedContainer()
            try row.encode("x")
            try ["k": 2].encode(to: list.superEncoder())
            try container.encodeNil(forKey: .nothing)
            try ["p": 3].encode(to: container.superEncoder(forKey: .parent))
            try [4].encode(to: container.superEncoder())
            #expect(list.count == 5 && list.codingPath.map(\.stringValue) == ["list"])
        }
    }

    @Test("nested containers of an own encode(to:) are nested values")
    func ownEncoding() throws {
        let value = try ParameterValueEncoder.value(of: Custom(), dates: .deferredToDate)
        #expect(
            value == [
                "list": [1, nil, ["inner": true], ["x"], ["k": 2]], "nothing": nil, "parent": ["p": 3], "super": [4],
            ])
    }

    @Test("values without names are no form, and no parameters are no pair")
    func topLevel() throws {
        #expect(throws: TransferError.self) { try form([1, 2]) }
        #expect(throws: TransferError.self) { try form("a") }
        let none: Login? = nil
        #expect(try form(none) == "http://h/p")
        #expect(try form([String: Int]()).isEmpty)
        let error = #expect(throws: TransferError.self) { try form(["a": Double.nan]) }
        #expect(error?.code == .invalidRequest && error?.message.contains("\"a\"") == true)
    }

    private struct Endless: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(Endless())
        }
    }

    @Test("a nesting that is too deep is an error")
    func depth() throws {
        let error = #expect(throws: TransferError.self) { try form(["a": Endless()]) }
        #expect(error?.code == .invalidRequest && error?.message.contains("\"a\"") == true)
    }

    private struct Refusal: Error {}
    private struct Refusing: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws { throw Refusal() }
    }

    @Test("an error of encode(to:) is the underlying error")
    func ownErrors() throws {
        for encoder in [.json, .urlEncodedForm] as [any ParameterEncoder] {
            let error = #expect(throws: TransferError.self) {
                try encoder.encode(["a": Refusing()], into: TransferRequest(url: "http://h/"))
            }
            #expect(error?.code == .invalidRequest && error?.underlying is Refusal)
        }
        let error = #expect(throws: TransferError.self) {
            try JSONParameterEncoder().encode(["a": Double.nan], into: TransferRequest(url: "http://h/"))
        }
        #expect(error?.underlying is EncodingError)
        #expect(error?.message.hasPrefix("the parameters cannot be encoded: a") == true)
    }

    @Test("requests send Encodable types, arrays and JSON values", .timeLimit(.minutes(1)))
    func requests() async throws {
        let server = try ScriptedServer(["/j": [.status(200)], "/j?page=2": [.status(200)]])
        let (manager, url) = (try SessionManager(configuration: .test()), server.url("/j"))
        struct Item: Encodable, Sendable { var itemName: String }
        _ = try await manager.request(url, method: .post, parameters: [Item(itemName: "a/b")], encoder: .json).value
        let encoder = JSONParameterEncoder(
            encoder: {
                let encoder = JSONEncoder()
                encoder.keyEncodingStrategy = .convertToSnakeCase
                return encoder
            }())
        _ = try await manager.request(
            url, method: .put, parameters: Item(itemName: "a"), encoder: encoder, headers: [.contentType("text/x")]
        ).value
        let json: JSONValue = [1, "two", nil]
        _ = try await manager.request(
            url, method: .post, parameters: json, encoder: .json(encoder: JSONEncoder())
        ).value
        let parameters: Parameters = ["a": [1, nil]]
        _ = try await manager.request(url, method: .post, parameters: parameters, encoder: .json).value
        _ = try await manager.request(url, parameters: ["page": 2]).value
        _ = try await manager.request(url, parameters: ["page": "2"], encoder: .urlEncodedForm, headers: [:]).value
        _ = try await manager.request(url, parameters: ["page": 2] as [String: Int], headers: ["X-A": "b"]).value
        _ = try await manager.request(url, parameters: json, encoder: .json, headers: [.accept: "x"]).value
        let sent = server.requests()
        #expect(
            sent.map { String(decoding: $0.body, as: UTF8.self) } == [
                #"[{"itemName":"a/b"}]"#, #"{"item_name":"a"}"#, #"[1,"two",null]"#, #"{"a":[1,null]}"#, "", "", "",
                #"[1,"two",null]"#,
            ])
        #expect(sent.prefix(3).map { $0.header("content-type") } == ["application/json", "text/x", "application/json"])
        #expect(sent[4...6].map(\.path) == ["/j?page=2", "/j?page=2", "/j?page=2"] && sent[6].header("x-a") == "b")

        let failed = await manager.request(url, method: .post, parameters: Refusing(), encoder: .json).outcome
        #expect(failed.error?.code == .invalidRequest)
    }

    @Test("downloads send Encodable parameters in their query", .timeLimit(.minutes(1)))
    func downloads() async throws {
        let server = try ScriptedServer(["/d?page=2": [.status(200, body: "abc")]])
        let (manager, place) = (try SessionManager(configuration: .test()), try Place())
        let path = place.temporary.file("file")
        let file = try await manager.download(
            server.url("/d"), parameters: ["page": 2] as [String: Int], headers: ["X-A": "b"], to: .path(path)
        ).value
        #expect(file.path == path && server.requests().first?.header("x-a") == "b")
    }
}
