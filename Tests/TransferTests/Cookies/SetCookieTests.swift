import Testing

@testable import Transfer

@Suite("Cookies that a server sets")
struct SetCookieTests {
    private static let now: Int64 = 1_000_000_000

    /// A field value with the server and path that send it, and the line of the cookie that is stored; `nil` if the field is
    /// refused.
    struct Row: Sendable, CustomTestStringConvertible {
        let field: String
        let host: String
        let path: String
        let isSecure: Bool
        let line: String?

        init(
            _ field: String, _ host: String = "www.example.org", _ path: String = "/", plain: Bool = false,
            gives line: String?
        ) {
            (self.field, self.host, self.path, isSecure, self.line) = (field, host, path, !plain, line)
        }

        var testDescription: String { "\(field.prefix(80)) from \(host)\(path)" }
    }

    private func check(_ row: Row) {
        let origin = CookieOrigin(host: row.host, path: row.path, isSecure: row.isSecure)
        let cookie = SetCookie(row.field).flatMap { Cookie($0, from: origin, now: Self.now) }
        #expect(cookie?.netscapeLine == row.line?.replacing(" | ", with: "\t"))
    }

    @Test(
        "the pair and its attributes (RFC 6265, section 5.2)",
        arguments: [
            Row("a=1", gives: "www.example.org | FALSE | / | FALSE | 0 | a | 1"),
            Row("  a \t=  x y\t ; Secure", gives: "www.example.org | FALSE | / | TRUE | 0 | a | x y"),
            Row("a=b=c", gives: "www.example.org | FALSE | / | FALSE | 0 | a | b=c"),
            Row("a=\"q,ü\"", gives: "www.example.org | FALSE | / | FALSE | 0 | a | \"q,ü\""),
            Row("a=", gives: "www.example.org | FALSE | / | FALSE | 0 | a | "),
            Row(
                "a=1;;;HTTPONLY;secure=yes;SameSite=Lax",
                gives: "#HttpOnly_www.example.org | FALSE | / | TRUE | 0 | a | 1"),
            Row("a=1; Path=/p; path=/q", gives: "www.example.org | FALSE | /q | FALSE | 0 | a | 1"),
            Row("a=1; Path = /p ", gives: "www.example.org | FALSE | /p | FALSE | 0 | a | 1"),
            Row("", gives: nil), Row(";", gives: nil), Row("a", gives: nil), Row("=1", gives: nil),
            Row(" =1", gives: nil), Row("; a=1", gives: nil),
            Row("a=\u{1}", gives: nil), Row("a=x\ty", gives: nil), Row("a\u{7F}=1", gives: nil),
            Row(
                "a=\(String(repeating: "v", count: 4095))",
                gives: "www.example.org | FALSE | / | FALSE | 0 | a | "
                    + String(repeating: "v", count: 4095)),
            Row("a=\(String(repeating: "v", count: 4096))", gives: nil),
            Row("a=1; x=\(String(repeating: "v", count: 5000))", gives: nil),
        ])
    func attributes(row: Row) { check(row) }

    @Test(
        "the expiry: Max-Age before Expires, 0 for a session (section 5.3, step 3)",
        arguments: [
            ("Max-Age=60", now + 60), ("Max-Age=0", 1), ("max-age=-5", 1), ("Max-Age=99999999999999999999", .max),
            ("Max-Age=9223372036854775807", .max), ("Max-Age=", 0), ("Max-Age=1h", 0), ("Max-Age=+5", 0),
            ("Max-Age=-", 0),
            ("Max-Age=5; Max-Age=x", now + 5), ("Expires=Sun, 09 Sep 2001 01:46:41 GMT", now + 1),
            ("Expires=Sunday, 09-Sep-01 01:46:41 GMT", now + 1), ("Expires=Sun Sep  9 01:46:41 2001", now + 1),
            ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", 1), ("Expires=Mon, 01 Jan 1601 00:00:00 GMT", 1),
            ("Expires=soon", 0),
            ("Expires=", 0), ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9", now + 9),
            ("Max-Age=0; Expires=Sun, 09 Sep 2001 01:46:41 GMT", 1),
        ] as [(String, Int64)])
    func expiry(attribute: String, expires: Int64) throws {
        let field = try #require(SetCookie("a=1; \(attribute)"))
        let origin = CookieOrigin(host: "a.net", path: "/", isSecure: false)
        #expect(Cookie(field, from: origin, now: Self.now)?.expires == expires)
    }

    @Test(
        "the domain: the host or one above it, no public suffix, nothing of another (section 5.3, steps 5 and 6)",
        arguments: [
            Row("a=1; Domain=example.org", "www.example.org", gives: ".example.org | TRUE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=.EXAMPLE.org", "WWW.example.org", gives: ".example.org | TRUE | / | FALSE | 0 | a | 1"),
            Row(
                "a=1; Domain=www.example.org", "www.example.org",
                gives: ".www.example.org | TRUE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=", "www.example.org", gives: "www.example.org | FALSE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=.", "www.example.org", gives: "www.example.org | FALSE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=deep.www.example.org", "www.example.org", gives: nil),
            Row("a=1; Domain=xample.org", "www.example.org", gives: nil),
            Row("a=1; Domain=example.com", "www.example.org", gives: nil),
            Row("a=1; Domain=..example.org", "www.example.org", gives: nil),
            Row("a=1; Domain=example.org.", "www.example.org", gives: nil),
            Row("a=1; Domain=org", "www.example.org", gives: nil),
            Row("a=1; Domain=co.uk", "www.shop.co.uk", gives: nil),
            Row("a=1; Domain=uk", "www.shop.co.uk", gives: nil),
            Row("a=1; Domain=shop.co.uk", "www.shop.co.uk", gives: ".shop.co.uk | TRUE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=github.io", "me.github.io", gives: nil),
            Row("a=1; Domain=ck", "a.b.ck", gives: nil), Row("a=1; Domain=b.ck", "a.b.ck", gives: nil),
            Row("a=1; Domain=www.ck", "a.www.ck", gives: ".www.ck | TRUE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=unknown", "a.unknown", gives: nil),
            Row("a=1; Domain=a.unknown", "b.a.unknown", gives: ".a.unknown | TRUE | / | FALSE | 0 | a | 1"),
            // The host is a public suffix itself: its cookie is not for those beneath it.
            Row("a=1; Domain=co.uk", "co.uk", gives: "co.uk | FALSE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=localhost", "localhost", gives: "localhost | FALSE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=127.0.0.1", "127.0.0.1", gives: "127.0.0.1 | FALSE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=0.1", "127.0.0.1", gives: nil),
            Row("a=1; Domain=::1", "::1", gives: "::1 | FALSE | / | FALSE | 0 | a | 1"),
            Row("a=1; Domain=1", "::1", gives: nil),
            Row("a=1", ".example.org", gives: nil),
            Row("a=1; Domain=co.uk.", "www.co.uk.", gives: nil), Row("a=1; Domain=uk.", "www.co.uk.", gives: nil),
            Row("a=1; Domain=www.co.uk.", "www.co.uk.", gives: "www.co.uk. | FALSE | / | FALSE | 0 | a | 1"),
        ])
    func domain(row: Row) { check(row) }

    @Test(
        "the path: the attribute, or the directory of what was asked for (section 5.1.4)",
        arguments: [
            ("", "/"), ("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/", "/a/b"), ("//a", "/"),
            ("a/b", "/"),
        ])
    func path(requested: String, expected: String) throws {
        let origin = CookieOrigin(host: "a.net", path: requested, isSecure: false)
        for attribute in ["", "; Path", "; Path=", "; Path=relative", "; Path=\"/q\""] {
            let field = try #require(SetCookie("a=1\(attribute)"))
            #expect(Cookie(field, from: origin, now: Self.now)?.path == expected)
        }
        let field = try #require(SetCookie("a=1; Path=/any/where/"))
        #expect(Cookie(field, from: origin, now: Self.now)?.path == "/any/where/")
    }

    @Test(
        "a secure cookie comes over a secure connection, and a name's prefix promises what the cookie keeps",
        arguments: [
            Row("a=1; Secure", "a.net", plain: true, gives: nil),
            Row("__Secure-a=1; Secure", "a.net", gives: "a.net | FALSE | / | TRUE | 0 | __Secure-a | 1"),
            Row("__Secure-a=1", "a.net", gives: nil), Row("__SECURE-a=1", "a.net", gives: nil),
            Row("__Secure-a=1; Secure", "a.net", plain: true, gives: nil),
            Row("__Host-a=1; Secure; Path=/", "a.net", "/x/y", gives: "a.net | FALSE | / | TRUE | 0 | __Host-a | 1"),
            Row("__Host-a=1; Secure", "a.net", "/x", gives: "a.net | FALSE | / | TRUE | 0 | __Host-a | 1"),
            Row("__Host-a=1; Secure", "a.net", "/x/y", gives: nil), Row("__Host-a=1; Path=/", "a.net", gives: nil),
            Row("__Host-a=1; Secure; Path=/x", "a.net", gives: nil), Row("__host-a=1; Path=/", "a.net", gives: nil),
            Row("__Host-a=1; Secure; Path=/; Domain=a.net", "a.net", gives: nil),
            Row("__Hosta=1", "a.net", gives: "a.net | FALSE | / | FALSE | 0 | __Hosta | 1"),
        ])
    func promises(row: Row) { check(row) }

    @Test(
        "which requests carry a cookie",
        arguments: [
            // Field, setting URL's path; then host, path, whether encrypted, whether it is sent.
            ("a=1", "www.example.org", "/", false, true), ("a=1", "WWW.Example.org", "/x/y", true, true),
            ("a=1", "example.org", "/", true, false), ("a=1", "x.www.example.org", "/", true, false),
            ("a=1", "evilwww.example.org", "/", true, false), ("a=1", "www.example.org.evil.net", "/", true, false),
            ("a=1; Domain=example.org", "example.org", "/", false, true),
            ("a=1; Domain=example.org", "api.example.org", "/", false, true),
            ("a=1; Domain=example.org", "evilexample.org", "/", false, false),
            ("a=1; Domain=example.org", "org", "/", false, false),
            ("a=1; Path=/p", "www.example.org", "/p", false, true),
            ("a=1; Path=/p", "www.example.org", "/p/q", false, true),
            ("a=1; Path=/p", "www.example.org", "/pq", false, false),
            ("a=1; Path=/p", "www.example.org", "/", false, false),
            ("a=1; Path=/p", "www.example.org", "/P", false, false),
            ("a=1; Path=/p/", "www.example.org", "/p/q", false, true),
            ("a=1; Path=/p/", "www.example.org", "/p", false, false),
            ("a=1; Secure", "www.example.org", "/", true, true), ("a=1; Secure", "www.example.org", "/", false, false),
            ("a=1; Max-Age=9", "www.example.org", "/", false, true),
            ("a=1; Max-Age=8", "www.example.org", "/", false, false),
        ])
    func sending(field: String, host: String, path: String, isSecure: Bool, isSent: Bool) {
        let storage = CookieStorage()
        let origin = CookieOrigin(host: "www.example.org", path: "/", isSecure: true)
        storage.receive([field], from: origin, now: Self.now)
        #expect(storage.cookies.count == 1)
        let sent = storage.cookies(for: host, path: path, isSecure: isSecure, now: Self.now + 8)
        #expect(sent.map(\.name) == (isSent ? ["a"] : []))
    }
}
