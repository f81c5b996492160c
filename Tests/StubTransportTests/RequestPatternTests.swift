import HTTPTypes
import Testing
import Transfer

@testable import StubTransport

@Suite("Methods and URLs that requests are compared with")
struct RequestPatternTests {
    @Test(
        "a URL matches in any notation, with any query unless the pattern has one",
        arguments: [
            ("https://a.example", "https://a.example/", true),
            ("HTTPS://A.example:443/x", "https://a.example/x", true),
            ("https://a.example/x", "https://a.example/x?page=2", true),
            ("https://a.example/x?page=1", "https://a.example/x?page=2", false),
            ("https://a.example/x?page=2", "https://a.example/x?page=2", true),
            ("https://a.example/x?a=1&b=2", "https://a.example/x?b=2&a=1", false),
            ("https://a.example/x?page=2", "https://a.example/x", false),
            ("https://a.example/x?*", "https://a.example/x?page=2", true),
            ("https://a.example/x?*", "https://a.example/x", true),
            ("https://a.example/x?*", "https://a.example/xy?page=2", false),
            ("https://*.example/x?*", "https://api.example/x", true),
            ("https://a.example/x?*page=2*", "https://a.example/x?a=1&page=2", true),
            ("https://a.example/x?*page=2*", "https://a.example/x?a=1", false),
            ("https://a.example/x?*page=2*", "https://a.example/x", false),
            ("https://a.example/x?", "https://a.example/x", true),
            ("https://a.example/x?", "https://a.example/x?", true),
            ("https://a.example/x?", "https://a.example/x?page=2", false),
            ("https://*.example/x?", "https://api.example/x?page=2", false),
            ("https://a.example/*?q=1", "https://a.example/x?p=2?q=1", false),
            ("https://a.example/x#f", "https://a.example/x?page=2#g", true),
            ("https://a.example/x", "https://a.example/x/y", false),
            ("https://a.example/*", "https://a.example/x/y", true),
            ("https://a.example/*/photo", "https://a.example/users/7/photo", true),
            ("https://a.example/*/photo", "https://a.example/users/7/photos", false),
            ("https://a.example/a*b*c", "https://a.example/abbbac", true),
            ("https://a.example/a*b*c", "https://a.example/acccab", false),
            ("*", "http://b.example/", true),
            ("https://*.example/x", "https://api.example/x?page=2", true),
            ("https://*.example/x", "https://api.example/y", false),
        ])
    func urls(pattern: String, url: String, matches: Bool) {
        #expect(RequestPattern(method: nil, url: pattern).matches(SentRequest(url: url)) == matches)
    }

    @Test("the method counts unless the pattern has none")
    func methods() {
        let request = SentRequest(method: .post, url: "https://a.example/")
        #expect(RequestPattern(method: "POST", url: "*").matches(request))
        #expect(RequestPattern(method: nil, url: "*").matches(request))
        #expect(!RequestPattern(method: "GET", url: "*").matches(request))
    }
}
