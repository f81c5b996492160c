import TestSupport
import Testing

@testable import HTTPMessages

@Suite("The name that a server suggests (RFC 6266)")
struct ContentDispositionTests {
    @Test(
        "names",
        arguments: [
            ("attachment; filename=a.iso", "a.iso"), ("attachment; filename=\"a b.iso\"", "a b.iso"),
            ("inline; FileName = a.iso ; size=5", "a.iso"),
            (#"attachment; filename="a\"b\\c.iso""#, #"a"b\c.iso"#),
            (#"attachment; filename="semi;colon.iso"; x=y"#, "semi;colon.iso"),
            ("attachment; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
            ("attachment; filename*=utf-8'de'a%20b.txt", "a b.txt"),
            // The extended form takes precedence, regardless of the order (section 4.3).
            ("attachment; filename=plain.txt; filename*=UTF-8''better.txt", "better.txt"),
            ("attachment; filename*=UTF-8''better.txt; filename=plain.txt", "better.txt"),
            // If the extended form is invalid, the plain one applies.
            ("attachment; filename=plain.txt; filename*=ISO-8859-1''na%EFve.txt", "plain.txt"),
            ("attachment; filename=plain.txt; filename*=UTF-8''%FF", "plain.txt"),
            ("attachment; filename=plain.txt; filename*=UTF-8''%4", "plain.txt"),
            ("attachment; filename=plain.txt; filename*=UTF-8''%+1", "plain.txt"),
            ("attachment; filename=first.txt; filename=second.txt", "first.txt"),
            // The name as sent; sanitising it happens elsewhere.
            ("attachment; filename=\"../../etc/passwd\"", "../../etc/passwd"),
            ("attachment; filename=\"unended", "unended"),
        ])
    func names(value: String, name: String) {
        #expect(head(200, ["Content-Disposition: \(value)"]).suggestedFileName == name)
    }

    @Test("a name in Latin-1 is one")
    func latin1() {
        let line = Array("Content-Disposition: attachment; filename=na".utf8) + [0xEF] + Array("ve.txt\n".utf8)
        #expect(ResponseHead(status: 200, version: "1.1", lines: line).suggestedFileName == "naïve.txt")
    }

    @Test("no name", arguments: ["attachment", "inline;", "attachment; name=x", "attachment; filename", "", ";;;;="])
    func none(value: String) {
        #expect(head(200, ["Content-Disposition: \(value)"]).suggestedFileName == nil)
    }

    @Test("a field of nothing but separators takes no longer than its length allows")
    func long() {
        #expect(ContentDisposition.fileName(String(repeating: ";=", count: 50_000)) == nil)
    }
}
