import Testing

@testable import dlctl

@Suite("Long URLs in messages") struct LongURLTests {
    private static let deep = "https://example.org:8443/a/" + String(repeating: "long/", count: 20) + "disk.iso"

    @Test("scheme, host and file name stay, and what is left out is marked")
    func shortened() {
        #expect(LongURL.shortened("https://example.org/a/b.iso?x=1") == "https://example.org/a/b.iso?x=1")
        #expect(LongURL.shortened(Self.deep) == "https://example.org:8443/…/disk.iso")
        let query = "?token=" + String(repeating: "x", count: 100)
        #expect(LongURL.shortened("https://example.org/disk.iso" + query) == "https://example.org/disk.iso?…")
        #expect(LongURL.shortened(Self.deep + query) == "https://example.org:8443/…/disk.iso?…")
        #expect(LongURL.shortened(Self.deep + "/") == "https://example.org:8443/…/disk.iso/")
        #expect(LongURL.shortened("https://example.org" + query) == "https://example.org/?…")
        let name = String(repeating: "n", count: 100) + ".iso"
        let short = LongURL.shortened("https://example.org/" + name)
        #expect(short.hasPrefix("https://example.org/nnn") && short.contains("…") && short.hasSuffix("n.iso"))
        let host = "https://" + String(repeating: "h", count: 100) + "/a"
        #expect(LongURL.shortened(host) == host)
    }

    @Test("the text around URLs stays as it is")
    func text() {
        #expect(LongURL.shortened(in: "no URL here: a://") == "no URL here: a://")
        #expect(
            LongURL.shortened(in: "--mirror \(Self.deep): is refused, as \"\(Self.deep)\", (\(Self.deep)).")
                == "--mirror https://example.org:8443/…/disk.iso: is refused, as \"https://example.org:8443/…/disk.iso\", "
                + "(https://example.org:8443/…/disk.iso).")
        #expect(LongURL.shortened(in: "http://a/ and ftp://b/") == "http://a/ and ftp://b/")
    }
}
