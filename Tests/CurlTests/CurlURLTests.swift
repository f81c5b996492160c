import Testing

@testable import Curl

@Suite("URLs as libcurl reads them")
struct CurlURLTests {
    @Test("scheme, host, port and path are told apart, and a fragment is left out")
    func parts() throws {
        let url = try CurlURL("HTTPS://Example.ORG/a/b.iso?x=1#part")
        #expect(url.scheme == "https")
        #expect(url.host == "example.org")
        #expect(url.port == 443)
        #expect(url.path == "/a/b.iso")
        #expect(url.text.hasSuffix("/a/b.iso?x=1"))
        #expect(url.origin == "https://example.org:443")
        #expect(try CurlURL("http://example.org").path == "/")
    }

    @Test("a default port and the same one spelt out are one origin; another is another")
    func origins() throws {
        let plain = try CurlURL("http://example.org/a")
        #expect(try CurlURL("http://EXAMPLE.org:80/b").origin == plain.origin)
        #expect(try CurlURL("http://example.org:8080/a").origin != plain.origin)
        #expect(try CurlURL("https://example.org/a").origin != plain.origin)
        #expect(try CurlURL("http://www.example.org/a").origin != plain.origin)
    }

    @Test("IPv6 addresses keep their brackets and their port")
    func ipv6() throws {
        let url = try CurlURL("http://[2001:DB8::1]:8080/f")
        #expect(url.host == "[2001:db8::1]")
        #expect(url.port == 8080)
        #expect(throws: CurlError.self) { try CurlURL("http://[2001:db8::1/f") }
    }

    @Test("a user and a password belong to the text, never to host or origin")
    func credentials() throws {
        let url = try CurlURL("http://user:secret@example.org/f")
        #expect(url.host == "example.org")
        #expect(url.origin == "http://example.org:80")
        // The part that looks like the host is the user here.
        #expect(try CurlURL("http://example.org@evil.example/f").host == "evil.example")
        // The credentials are kept within an origin and dropped across origins.
        #expect(try CurlURL("/g", relativeTo: url).text == "http://user:secret@example.org/g")
        #expect(try CurlURL("http://other.example/g", relativeTo: url).text == "http://other.example/g")
    }

    @Test(
        "a reference is resolved against its base (RFC 3986, section 5)",
        arguments: [
            ("g", "http://a.example/b/c/g"), ("./g", "http://a.example/b/c/g"), ("/g", "http://a.example/g"),
            ("../g", "http://a.example/b/g"), ("../../../g", "http://a.example/g"), ("?y", "http://a.example/b/c/d?y"),
            ("//h.example/x", "http://h.example/x"), ("https://h.example/x", "https://h.example/x"),
            ("a b", "http://a.example/b/c/a%20b"),
        ])
    func relative(reference: String, expected: String) throws {
        let base = try CurlURL("http://a.example/b/c/d?q#f")
        #expect(try CurlURL(reference, relativeTo: base).text == expected)
    }

    @Test(
        "control characters are refused wherever they stand",
        arguments: ["\n", "\r\n", "\0", "\t", "\u{1}", "\u{1F}", "\u{7F}"])
    func controlCharacters(character: String) throws {
        let base = try CurlURL("http://example.org/")
        for text in [
            "http://example.org/\(character)", "\(character)http://example.org/", "http://exa\(character)mple.org/",
        ] {
            #expect(throws: CurlError.self) { try CurlURL(text) }
            #expect(throws: CurlError.self) { try CurlURL(text, relativeTo: base) }
        }
    }

    @Test(
        "what is no URL is refused",
        arguments: [
            "", "example.org/f", "http://", "http://example.org:99999/", "http://example.org:x/",
            "http://exa mple.org/", "http://example.org/a b", "nonsense://example.org/", "://example.org",
        ])
    func garbage(text: String) {
        #expect(throws: CurlError.self) { try CurlURL(text) }
    }
}
