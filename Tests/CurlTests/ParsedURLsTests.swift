import Testing

@testable import Curl

@Suite("Parsed URLs")
struct ParsedURLsTests {
    @Test("a URL is what a new parser returns, however often it is asked for, and beside many others")
    func same() throws {
        let urls = ParsedURLs()
        for _ in 0..<3 {
            for number in 0..<300 {
                let text = "http://h/\(number)?a=\(number)"
                #expect(try urls.url(text).text == text)
            }
        }
    }

    @Test("a URL is parsed once")
    func once() throws {
        let urls = ParsedURLs()
        let first = try urls.url("http://h/a")
        #expect(try urls.url("http://h/a").isCopy(of: first))
    }

    @Test(
        "texts that are equal for Swift and have different bytes are different URLs",
        arguments: [("e\u{301}", "\u{E9}"), ("K", "\u{212A}")])
    func equivalent(one: String, other: String) throws {
        #expect(one == other)
        let urls = ParsedURLs()
        for _ in 0..<2 {
            #expect(try urls.url("http://h/\(one)") == CurlURL("http://h/\(one)"))
            #expect(try urls.url("http://h/\(other)") == CurlURL("http://h/\(other)"))
        }
        #expect(try urls.url("http://h/\(one)") != urls.url("http://h/\(other)"))
    }

    @Test("a URL with a password is not kept", arguments: ["http://u:p@h/a", "http://u@h/a", "https://:p@h/a"])
    func password(text: String) throws {
        let urls = ParsedURLs()
        let first = try urls.url(text)
        let second = try urls.url(text)
        #expect(second == first && !second.isCopy(of: first))
    }

    @Test("a long URL is not kept")
    func long() throws {
        let urls = ParsedURLs()
        let text = "http://h/" + String(repeating: "a", count: 2000)
        let first = try urls.url(text)
        #expect(try !urls.url(text).isCopy(of: first))
    }

    @Test("a text that is no URL is an error each time")
    func invalid() {
        let urls = ParsedURLs()
        for _ in 0..<2 {
            #expect(throws: CurlError.self) { try urls.url("http://") }
        }
    }
}
