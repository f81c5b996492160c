import Curl
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Where a redirect leads")
struct RedirectRuleTests {
    private func follow(
        _ location: String, from text: String = "https://example.org/a/b", allowsDowngrade: Bool = false
    ) throws -> TransferRequest {
        var request = TransferRequest(
            url: text,
            headerFields: [.authorization: "Bearer x", .cookie: "a=b", .accept: "*/*", .acceptLanguage: "de"],
            credential: Credential(user: "u", password: "p"))
        request.headerFields.append(HTTPField(name: try #require(HTTPField.Name("X-Token")), value: "secret"))
        request.allowsDowngrade = allowsDowngrade
        return try RedirectRule.follow(
            head(302, ["Location: \(location)"]), from: request, at: CurlURL(text), protocols: RequestOptions.protocols
        ).request
    }

    @Test("F77: where a redirect leads, the request is sent what its logins have for that server, by that scheme")
    func logins() throws {
        let name = try #require(HTTPField.Name("X-Token"))
        func login(_ user: String, _ schemes: Set<String> = ["https"]) -> ServerLogin {
            ServerLogin(
                schemes: schemes, credential: Credential(user: user, password: "p"),
                headerFields: [name: "of-\(user)"])
        }
        var request = TransferRequest(
            url: "https://example.org/a", headerFields: [.cookie: "a=b"], credential: .bearer("own"))
        request.allowsDowngrade = true
        request.logins = [
            HostTable(["portal.example": login("first")]),
            HostTable(["portal.example": login("second"), "*.example": login("plain", ["http"])]),
        ]
        func follow(_ location: String) throws -> TransferRequest {
            try RedirectRule.follow(
                head(302, ["Location: \(location)"]), from: request, at: CurlURL(request.url),
                protocols: RequestOptions.protocols
            ).request
        }
        let portal = try follow("https://portal.example/login")
        #expect(portal.credential?.user == "first" && portal.headerFields[name] == "of-first")
        #expect(portal.headerFields[.cookie] == nil)
        #expect(try follow("http://portal.example/login").credential?.user == "plain")
        #expect(try follow("https://other.example/login").credential == nil)
        #expect(try follow("https://me:x@portal.example/login").credential == nil, "the URL's own has precedence")
        #expect(try follow("https://example.org/b").credential == .bearer("own"))
        // From there it goes no further, and comes back with nothing but its logins.
        request = portal
        #expect(try follow("https://example.com/c").credential == nil)
        #expect(try follow("https://example.com/c").headerFields[name] == nil)
        #expect(request.redirected(to: "https://portal.example/m").credential?.user == "first")
    }

    @Test("within an origin everything goes along", arguments: ["/c", "c", "https://EXAMPLE.org:443/c"])
    func sameOrigin(location: String) throws {
        let next = try follow(location)
        #expect(next.credential != nil)
        #expect(next.headerFields.count == 5)
        #expect(next.url.lowercased().contains("example.org"))
    }

    @Test(
        "A8: credentials, cookies and fields of one's own cross neither host nor port nor scheme",
        arguments: [
            "https://example.com/c", "https://example.org:8443/c", "https://www.example.org/c", "//example.net/c",
        ])
    func otherOrigin(location: String) throws {
        let next = try follow(location)
        #expect(next.credential == nil)
        #expect(next.headerFields.map(\.name) == [.accept, .acceptLanguage])
        #expect(next.url.hasSuffix("/c"))
    }

    @Test("the way up from http to https is another origin too")
    func upgrade() throws {
        let next = try follow("https://example.org/c", from: "http://example.org/a")
        #expect(next.credential == nil)
        #expect(next.headerFields[.authorization] == nil)
    }

    @Test("the way up from http to https on one host is open to a body that is to stay there, and no other way is")
    func keptBody() throws {
        func follow(_ location: String) throws -> TransferRequest {
            var request = TransferRequest(url: "http://example.org/in", method: .put)
            request.keepsBodyWithinOrigin = true
            return try RedirectRule.follow(
                head(307, ["Location: \(location)"]), from: request, at: CurlURL(request.url),
                protocols: RequestOptions.protocols
            ).request
        }
        for location in ["/c", "http://EXAMPLE.org:80/c", "https://example.org/c", "https://example.org:8443/c"] {
            #expect(try follow(location).method == .put)
        }
        for location in ["https://www.example.org/c", "http://example.org:8080/c", "//example.net/c"] {
            #expect(throws: TransferError.self) { try follow(location) }
        }
    }

    @Test("A9: the way down from https to http is refused unless it was allowed")
    func downgrade() throws {
        #expect { try follow("http://example.org/c") } throws: { ($0 as? TransferError)?.code == .protocolNotAllowed }
        let next = try follow("http://example.org/c", allowsDowngrade: true)
        #expect(next.url == "http://example.org/c")
        #expect(next.credential == nil)
    }

    @Test(
        "A10: other protocols, and what is no URL, are refused",
        arguments: [
            "file:///etc/passwd", "gopher://example.org/", "ftp://example.org/", "dict://example.org/",
            "javascript:alert(1)",
            "http://", "http://[::1/", "https://example.org:99999/", "https://exa\u{1}mple.org/",
        ])
    func refused(location: String) {
        #expect { try follow(location) } throws: { ($0 as? TransferError)?.code == .protocolNotAllowed }
    }

    @Test("a redirect to nowhere is the status's failure")
    func nowhere() {
        #expect { try follow("") } throws: { ($0 as? TransferError)?.httpStatus == 302 }
    }

    @Test("redirects are these five and no other")
    func statuses() {
        #expect((300..<400).filter(RedirectRule.isRedirect) == [301, 302, 303, 307, 308])
    }
}
