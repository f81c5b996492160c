import Testing

@testable import Transfer

@Suite("Cookies")
struct CookieTests {
    static let far: Int64 = 4_102_444_800

    @Test(
        "a line read and written is the same line",
        arguments: [
            "www.example.org\tFALSE\t/\tFALSE\t0\ta\t1",
            ".example.org\tTRUE\t/a/b\tTRUE\t4102444800\tname\ta b",
            "#HttpOnly_www.example.org\tFALSE\t/\tFALSE\t1\th\tx",
            "www.example.org\tFALSE\t/\tFALSE\t0\tempty\t",
            "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t1", "::1\tFALSE\t/\tFALSE\t0\ta\t1",
            "example.org\tFALSE\t/\tFALSE\t0\ta\t\"q=1,ü\"",
        ])
    func roundTrip(line: String) throws {
        let cookie = try #require(Cookie(netscape: line))
        #expect(cookie.netscapeLine == line)
        #expect(Cookie(netscape: cookie.netscapeLine + "\r\n") == cookie)
    }

    @Test("every field arrives")
    func fields() throws {
        let cookie = try #require(Cookie(netscape: "#HttpOnly_.EXAMPLE.org\tTRUE\t/p\ttrue\t99\tn\tv"))
        #expect(cookie.domain == "example.org")
        #expect(cookie.includesSubdomains && cookie.isSecure && cookie.isHTTPOnly)
        #expect(cookie.path == "/p" && cookie.expires == 99 && cookie.name == "n" && cookie.value == "v")
        #expect(!"\(cookie)".contains("v"))
        #expect(Cookie(netscape: "a.b\tFALSE\t/\tFALSE\t0\tname")?.value == "")
        #expect(Cookie(netscape: "a.b\tFALSE\t/\tFALSE\t99999999999999999999999\ta\tb")?.expires == .max)
    }

    @Test(
        "F78: an expiry may have a fraction, and an empty or a negative one is that of a session cookie",
        arguments: [("1735689600.25", 1_735_689_600), ("7.", 7), ("", 0), ("-1", 0), ("-1.5", 0)])
    func looseExpiry(text: String, expires: Int64) throws {
        let cookie = try #require(Cookie(netscape: "a.b\tFALSE\t/\tFALSE\t\(text)\tn\tv"))
        #expect(cookie.expires == expires && cookie.value == "v")
    }

    @Test(
        "what is no cookie is none",
        arguments: [
            "", "# a comment", "#HttpOnly_", "a.b\tFALSE\t/\tFALSE\t0", "a.b\tMAYBE\t/\tFALSE\t0\ta\tb",
            "a.b\tFALSE\t/\tFALSE\t-\ta\tb", "a.b\tFALSE\t/\tFALSE\t+1\ta\tb", "a.b\tFALSE\t/\tFALSE\t.5\ta\tb",
            "a.b\tFALSE\t/\tFALSE\t1.5.1\ta\tb", "a.b\tFALSE\t/\tFALSE\t1e9\ta\tb",
            "a.b\tFALSE\t/\tFALSE\t0\t\tb", "a.b\tFALSE\t/\tFALSE\t0\ta\tb\tc", "a.b\tFALSE\t/\tFALSE\t0\ta\tb\u{0}",
            "a.b\tFALSE\t/\tFALSE\t0\ta\tb\nc", "a.b\tFALSE\t/\tFALSE\t0\ta\tb\r\nc", "a.b\tFALSE\tx\tFALSE\t0\ta\tb",
            "\tFALSE\t/\tFALSE\t0\ta\tb", ".\tFALSE\t/\tFALSE\t0\ta\tb", "..b\tFALSE\t/\tFALSE\t0\ta\tb",
            "..::1\tFALSE\t/\tFALSE\t0\ta\tb",
            "a b\tFALSE\t/\tFALSE\t0\ta\tb", "a.b\tFALSE\t/\tFALSE\t0\ta=c\tb", "a.b\tFALSE\t/\tFALSE\t0\ta\tb;c",
            "a.b\tFALSE\t/\u{7F}\tFALSE\t0\ta\tb", "ä.b\tFALSE\t/\tFALSE\t0\ta\tb",
            // libcurl takes a line with this beginning for a header field.
            "Set-Cookie:\tFALSE\t/\tFALSE\t0\ta\tb",
        ])
    func none(line: String) {
        #expect(Cookie(netscape: line) == nil)
    }

    @Test("limits hold to the byte")
    func limits() {
        func cookie(value: Int = 1, path: Int = 1, domain: Int = 3) -> Cookie? {
            Cookie(
                name: "n", value: String(repeating: "v", count: value),
                domain: String(repeating: "d", count: domain), path: "/" + String(repeating: "p", count: path - 1))
        }
        #expect(cookie(value: Cookie.maximumLength - 1) != nil)
        #expect(cookie(value: Cookie.maximumLength) == nil)
        #expect(cookie(path: Cookie.maximumPathLength) != nil)
        #expect(cookie(path: Cookie.maximumPathLength + 1) == nil)
        #expect(cookie(domain: Cookie.maximumDomainLength) != nil)
        #expect(cookie(domain: Cookie.maximumDomainLength + 1) == nil)
        // The longest possible cookie fits into the longest line.
        let longest = cookie(
            value: Cookie.maximumLength - 1, path: Cookie.maximumPathLength, domain: Cookie.maximumDomainLength)
        #expect(longest.flatMap { Cookie(netscape: $0.netscapeLine) } == longest)
        #expect(Cookie(netscape: String(repeating: "\t", count: 1_000_000)) == nil)
    }

    @Test("an address, and a name of one label, have nothing beneath them")
    func notBeneath() {
        for domain in ["127.0.0.1", "::1", "uk", "localhost"] {
            #expect(Cookie(name: "a", value: "", domain: domain, includesSubdomains: true)?.includesSubdomains == false)
        }
    }

    @Test(
        "hosts that a domain matches (RFC 6265, section 5.1.3)",
        arguments: [
            ("example.org", true, true), ("www.example.org", true, false), ("a.b.EXAMPLE.org", true, false),
            ("badexample.org", false, false), ("example.org.evil.net", false, false), ("org", false, false),
            (".example.org", true, false), ("", false, false),
        ])
    func hosts(host: String, beneath: Bool, alone: Bool) {
        let wide = Cookie(name: "a", value: "", domain: "example.org", includesSubdomains: true)
        #expect(wide?.matches(host: host) == beneath)
        #expect(Cookie(name: "a", value: "", domain: "example.org")?.matches(host: host) == alone)
    }

    @Test(
        "paths that a path matches (section 5.1.4)",
        arguments: [
            ("/a", "/a", true), ("/a", "/a/", true), ("/a", "/a/b", true), ("/a", "/ab", false), ("/a/", "/a", false),
            ("/a/", "/a/b", true), ("/", "/anything", true), ("/", "", true), ("/a", "", false), ("/a", "/A", false),
        ])
    func paths(own: String, requested: String, matches: Bool) {
        #expect(Cookie(name: "a", value: "", domain: "a.b", path: own)?.matches(path: requested) == matches)
    }

    @Test("a session's cookie does not expire, another does at its time")
    func expiry() {
        #expect(Cookie(name: "a", value: "", domain: "a.b")?.isExpired(now: .max) == false)
        #expect(Cookie(name: "a", value: "", domain: "a.b", expires: 10)?.isExpired(now: 9) == false)
        #expect(Cookie(name: "a", value: "", domain: "a.b", expires: 10)?.isExpired(now: 10) == true)
    }
}
