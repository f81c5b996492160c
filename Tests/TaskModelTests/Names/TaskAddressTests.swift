import TaskModel
import Testing

@Suite("A task's address")
struct TaskAddressTests {
    @Test(
        "scheme, host and port are taken apart",
        arguments: [
            ("http://example.org/a", "http", "example.org", 80), ("HTTPS://Example.ORG", "https", "example.org", 443),
            ("https://example.org:8443/a:b@c", "https", "example.org", 8443), ("http://h:/", "http", "h", 80),
            ("http://[2001:DB8::1]/a", "http", "[2001:db8::1]", 80), ("http://[::1]:81", "http", "[::1]", 81),
            ("http://[::ffff:10.0.0.1]:1/", "http", "[::ffff:10.0.0.1]", 1),
            ("http://u:p@h:65535/", "http", "h", 65535), ("http://u@x:p@h/", "http", "h", 80),
            ("http://h?a=http://other/", "http", "h", 80), ("http://h#@other/", "http", "h", 80),
            ("http://h/a\\b", "http", "h", 80), ("http://bücher.example/", "http", "bücher.example", 80),
            ("ftp://h/a", "ftp", "h", 21), ("ftps://h/a", "ftps", "h", 990), ("sftp://h/a", "sftp", "h", 22),
            ("http://h/100%25%zz", "http", "h", 80),
        ])
    func parts(url: String, scheme: String, host: String, port: Int) throws {
        let address = try TaskAddress(parsing: url)
        #expect((address.scheme, address.host, address.port) == (scheme, host, port))
        #expect(address.hostKey == "\(scheme)://\(host):\(port)")
        #expect(address.url == url)
    }

    @Test(
        "what is no address of a host is refused",
        arguments: [
            "", "example.org/a", "//h/a", "/a", "http:/h", "http:h", "http://", "http:///a", "http://./", "http://@/",
            "http://:80/", "http://h:0/", "http://h:65536/", "http://h:-1/", "http://h:80a/", "http://h:000080/",
            "http://h:８０/", "http://[::1/", "http://[1234]/", "http://[]/", "http://[::g]/", "http://[::1]x/",
            "http://[::1]80/", "http://[fe80::1%]/", "http://[%25eth0]/",
            "http://[fe80::1%25eth0%25]/", "http://[fe80::1%25eth/0]/",
            "http://[fe80::1%25abcdefghijklmnop]/", "http://h%25eth0/", "http://a b/", "http://u p@h/",
            "http://h/\u{0}",
            "http://h/\r\n", "http://h/\n", "http://h/\u{7F}", "http://h\t/", "http://a,b/", "http://a/b\r\nHost: c",
            "http://\(String(repeating: "a", count: 254))/", "1\u{E9}://h/", "://h/",
        ])
    func refused(url: String) {
        #expect { try TaskAddress(parsing: url) } throws: { error in
            (error as? FieldError)?.field == "url" && (error as? FieldError)?.code == .invalid
        }
    }

    @Test(
        "F81: the zone of an IPv6 address is part of the host, encoded as RFC 6874 says or not",
        arguments: [
            ("http://[fe80::1%25eth0]/a", "[fe80::1%25eth0]", 80),
            ("http://[FE80::1%Eth0.1]:81/", "[fe80::1%25eth0.1]", 81),
            ("https://u:p@[fe80::a%252]/", "[fe80::a%252]", 443),
            ("http://[fe80::1%25]/", "[fe80::1%2525]", 80),
            ("http://[fe80::1%25br-lan_2~]/", "[fe80::1%25br-lan_2~]", 80), ("http://[::1%25lo]/", "[::1%25lo]", 80),
        ])
    func zones(url: String, host: String, port: Int) throws {
        let address = try TaskAddress(parsing: url)
        #expect((address.host, address.port) == (host, port))
        #expect(address.url == url)
    }

    @Test(
        "A11: an address that programs read in two ways is refused",
        arguments: [
            // libcurl connects to the host behind the at sign, a browser to the one before the back-slash.
            "http://good\\@evil/", "http://good\\evil/", "http://u\\:p@h/", "http://h\\/a",
            // libcurl decodes it: one host would have many names.
            "http://127%2e0.0.1/", "http://h%00/", "http://%68/",
        ])
    func ambiguous(url: String) {
        #expect(throws: FieldError.self) { try TaskAddress(parsing: url) }
    }

    @Test(
        "A10: a protocol that is not ours is named, and so are those that are fetched by",
        arguments: ["file:///etc/passwd", "gopher://h/", "a+b-c://h"])
    func schemes(url: String) {
        #expect { try TaskAddress(parsing: url, field: "proxy") } throws: { error in
            let error = error as? FieldError
            return error?.code == .protocolNotAllowed && error?.field == "proxy"
                && error?.message
                    == "the protocol \(url.prefix { $0 != ":" }) is not allowed; use http, https, ftp, ftps or sftp"
        }
    }

    @Test("8192 bytes are the longest")
    func longest() throws {
        let url = "http://h/" + String(repeating: "a", count: TaskAddress.maximumLength - 9)
        #expect(try TaskAddress(parsing: url).redacted == url)
        #expect(throws: FieldError.self) { try TaskAddress(parsing: url + "a") }
    }

    @Test(
        "secrets are not shown",
        arguments: [
            ("http://user:pass@h/a", "http://h/a"), ("http://user@h:81/a@b", "http://h:81/a@b"),
            ("http://u@x:p@h/a", "http://h/a"), ("http://u:p@[::1]:8/?token=x", "http://[::1]:8/?token=REDACTED"),
            ("http://h/?a=1&X-Amz-Signature=abc&b=2", "http://h/?a=1&X-Amz-Signature=REDACTED&b=2"),
            ("http://h/?sig=a=b#f?sig=c", "http://h/?sig=REDACTED#f?sig=c"), ("http://h/?sig", "http://h/?sig"),
            ("http://h/?&&key=&x", "http://h/?&&key=REDACTED&x"), ("http://h?TOKEN=1", "http://h?TOKEN=REDACTED"),
            ("http://h/?to%6ben=1&%53ig=2", "http://h/?to%6ben=REDACTED&%53ig=REDACTED"),
            ("http://h/#token=1", "http://h/#token=REDACTED"), ("http://h/token=1", "http://h/token=1"),
            ("http://h/#a=1&access_token=x?y", "http://h/#a=1&access_token=REDACTED"), ("http://h/#", "http://h/#"),
            ("http://h/a;JSESSIONID=S/b;v=1?q=2", "http://h/a;JSESSIONID=REDACTED/b;v=1?q=2"),
            ("http://h/?pw=1&sid=2&code=3", "http://h/?pw=REDACTED&sid=REDACTED&code=3"),
            ("http://h/?monkey=1&tokens=2", "http://h/?monkey=1&tokens=2"),
            ("http://h/?a=1;token=b;c&d=2", "http://h/?a=1;token=REDACTED&d=2"),
            ("http://h/?a=b;c&private_token=d", "http://h/?a=b;c&private_token=REDACTED"),
        ])
    func redaction(url: String, shown: String) throws {
        #expect(try TaskAddress(parsing: url).redacted == shown)
    }

    @Test(
        "user and password are read from the URL",
        arguments: [
            ("sftp://h/a@b", nil, nil), ("sftp://u@h/a", "u", nil), ("sftp://u:@h", "u", ""),
            ("ftp://u%40x:p%3A:%2f@h?a", "u@x", "p::/"), ("http://a@b@h/", "a@b", nil), ("http://:p@h/", nil, nil),
        ] as [(String, String?, String?)])
    func login(url: String, user: String?, password: String?) throws {
        let login = try TaskAddress(parsing: url).login
        #expect(login?.user == user && login?.password == password)
    }

    @Test("spaces at the ends are left out, and others belong to path or query")
    func spaces() throws {
        let address = try TaskAddress(parsing: "  http://h/a b?c d  ")
        #expect(address.url == "http://h/a b?c d" && address.host == "h")
        #expect(FileName.fromURL(address.url) == "a b")
    }
}
