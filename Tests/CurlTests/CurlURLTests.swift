import CCurl
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
            "http://exa mple.org/", "nonsense://example.org/", "://example.org",
        ])
    func garbage(text: String) {
        #expect(throws: CurlError.self) { try CurlURL(text) }
    }

    @Test(
        "characters that a request must not contain are percent-encoded as UTF-8 (WHATWG URL Standard)",
        arguments: [
            ("http://h/q?x=ä", "/q?x=%C3%A4"), ("http://h/a b", "/a%20b"),
            ("http://h/ü/€?ß", "/%C3%BC/%E2%82%AC?%C3%9F"),
            ("http://h/q?a b", "/q?a%20b"), ("http://h/<\"`{}^>", "/%3C%22%60%7B%7D%5E%3E"),
            ("http://h/q?<\"'`{}^>", "/q?%3C%22%27`{}^%3E"), ("http://h/it's", "/it's"),
            ("http://h/日本", "/%E6%97%A5%E6%9C%AC"),
            ("  http://h/a  ", "/a"), ("http://h/a%20b%2f", "/a%20b%2f"), ("http://h/a?b?c=1&d=[1]", "/a?b?c=1&d=[1]"),
            ("http://h/😀", "/%F0%9F%98%80"), ("http://h/a#ä b", "/a"), ("http://h/|a|", "/|a|"),
        ])
    func percentEncoding(text: String, target: String) throws {
        let url = try CurlURL(text)
        #expect(url.target == target)
        #expect(try CurlURL(url.text) == url, "an encoded URL stays as it is")
    }

    @Test("a redirect's target is percent-encoded too, relative or absolute")
    func encodedRedirects() throws {
        let base = try CurlURL("http://h/dir/file")
        #expect(try CurlURL("/a b?ä", relativeTo: base).target == "/a%20b?%C3%A4")
        #expect(try CurlURL("ä:b", relativeTo: base).target == "/dir/%C3%A4:b")
        #expect(try CurlURL("?x y", relativeTo: base).target == "/dir/file?x%20y")
        #expect(try CurlURL("//k/ü", relativeTo: base).text == "http://k/%C3%BC")
        #expect(try CurlURL("https://k/ü", relativeTo: base).text == "https://k/%C3%BC")
    }

    @Test(
        "host names beyond ASCII are converted as IDNA says",
        arguments: [
            ("http://bücher.example/", "xn--bcher-kva.example"),
            ("http://BÜCHER.example:8080/", "xn--bcher-kva.example"),
            ("http://faß.example/", "xn--fa-hia.example"), ("http://例え.テスト/", "xn--r8jz45g.xn--zckzah"),
            ("http://user:pä@bücher.example/", "xn--bcher-kva.example"),
        ])
    func internationalHosts(text: String, host: String) throws {
        let url = try CurlURL(text)
        #expect(url.host == host && url.text.utf8.allSatisfy { $0 < 0x80 })
    }

    @Test("a number in full-width digits is the address that libcurl connects to")
    func fullWidthNumber() throws {
        #expect(try CurlURL("http://０x7f.1/").host == "127.0.0.1")
    }

    @Test("F81: the zone of an IPv6 address tells origins apart, and is no part of the host that is contacted")
    func zones() throws {
        for text in ["http://[FE80::1%25eth0]:81/f", "http://[fe80::1%eth0]:81/f"] {
            let url = try CurlURL(text)
            #expect(url.host == "[fe80::1]" && url.origin == "http://[fe80::1%25eth0]:81")
        }
        let other = try CurlURL("http://[fe80::1%25eth1]:81/f")
        #expect(other.origin == "http://[fe80::1%25eth1]:81")
        #expect(try CurlURL("/g", relativeTo: other).origin == other.origin)
        #expect(try CurlURL("http://[fe80::1]:81/f").origin == "http://[fe80::1]:81")
    }

    @Test("user and password may contain characters beyond ASCII")
    func encodedUserInformation() throws {
        #expect(try CurlURL("ftp://ü:p w@h/f").text == "ftp://%C3%BC:p%20w@h/f")
    }

    // MARK: The text

    @Test("the text of a URL is what libcurl itself makes of it")
    func textOfLibcurl() throws {
        let schemes = ["http", "HTTPS", "ftp", "sftp", "file"]
        let users = ["", "u@", "u:p@", ":p@", "@", "a%40b:c@"]
        let hosts = ["h", "H.Example", "127.0.0.1", "0x7f.1", "[::1]", "[fe80::1%25eth0]", "a%41b", ""]
        let ports = ["", ":", ":80", ":443", ":8080"]
        let paths = ["", "/", "/a/../b", "//", "/a%2fb", "/@", "/a?", "/a?b=c&d", "?q", "/?q?r", "/a#f", "#f", "/|"]
        var count = 0
        for scheme in schemes {
            for user in users {
                for host in hosts {
                    for port in ports {
                        for path in paths {
                            if try check("\(scheme)://\(user)\(host)\(port)\(path)") { count += 1 }
                        }
                    }
                }
            }
        }
        let base = try CurlURL("http://u:p@h:8080/a/b?c")
        for reference in ["d", "/d", "?d", "//k/l", "../e#f", "http://k", "https://v@k:1/"] {
            #expect(try check(reference, relativeTo: base))
        }
        #expect(count > 5_000)
    }

    /// Returns whether the text is a URL.
    private func check(_ text: String, relativeTo base: CurlURL? = nil) throws -> Bool {
        let handle = try CurlURLHandle()
        do {
            if let base { try handle.set(CURLUPART_URL, to: base.text) }
            try handle.set(CURLUPART_URL, to: text)
            try handle.remove(CURLUPART_FRAGMENT)
        } catch {
            #expect(throws: CurlError.self) { try CurlURL(text, relativeTo: base) }
            return false
        }
        // A URL without a port, such as that of a file, is refused, although libcurl prints it.
        guard let url = try? CurlURL(text, relativeTo: base) else { return false }
        // libcurl leaves out the question mark of an empty query.
        let mark = handle.part(CURLUPART_QUERY)?.isEmpty == true ? "?" : ""
        #expect(url.text == handle.part(CURLUPART_URL).map { $0 + mark }, "\(text)")
        #expect(url.text.hasSuffix(url.target), "\(text)")
        return true
    }

    @Test("a text that counts as encoded is not changed by the encoding, for each ASCII character in each part")
    func encodedCharacters() {
        for byte in UInt8(0)..<128 {
            let character = String(decoding: [byte], as: UTF8.self)
            for text in [
                "http://u\(character)@h/", "http://h/p\(character)p", "http://h/?q\(character)q",
                "http://h/#f\(character)f",
            ] {
                if CurlURL.isPercentEncoded(text) { #expect(CurlURL.percentEncoded(text) == text, "\(text)") }
            }
        }
        #expect(
            !CurlURL.isPercentEncoded("http://h/ä") && CurlURL.isPercentEncoded("http://h/~a-Z_9!$&()*+,;=:@/?%20#[]"))
    }
}
