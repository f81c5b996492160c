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
            ("attachment; filename=plain.txt; filename*=KOI8-R''na%EFve.txt", "plain.txt"),
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

    @Test(
        "F74: names in the forms that servers send against the grammar",
        arguments: [
            // A path of Windows whose backslashes are not escaped.
            (#"attachment; filename="C:\dir\name.png""#, #"C:\dir\name.png"#),
            (#"attachment; filename="C:\\dir\\a\"b.png""#, #"C:\dir\a"b.png"#),
            // No type before the parameters.
            (#"filename="a.mp4""#, "a.mp4"), ("filename=a;b=c", "a"), (#"filename="a;b.mp4"; x=y"#, "a;b.mp4"),
            ("filename*=UTF-8''%e2%82%ac.txt", "€.txt"),
            ("attachment; filename*=iso-8859-1'en'%A3%20rates.txt", "£ rates.txt"),
            ("attachment; filename=plain.txt; filename*=ISO-8859-1''na%EFve.txt", "naïve.txt"),
            // Characters that came as UTF-8, whatever is said of them.
            ("attachment; filename*=iso-8859-1''naïve.txt", "naïve.txt"),
            ("attachment; filename=plain.txt; filename*=iso-8859-1''naï%EF.txt", "plain.txt"),
            (#"attachment; filename="=?iso-8859-1?Q?naïve?=""#, "=?iso-8859-1?Q?naïve?="),
            // Percent-encoding in the plain form.
            ("attachment; filename=na%C3%AFve%20file.txt", "naïve file.txt"),
            (#"attachment; filename="100%.txt""#, "100%.txt"), ("attachment; filename=a%FF.txt", "a%FF.txt"),
            ("attachment; filename=a%2Fb.txt", "a%2Fb.txt"), ("attachment; filename=a%5Cb.txt", "a%5Cb.txt"),
            ("attachment; filename=%2E%2E", "%2E%2E"), ("attachment; filename=a%00.txt", "a%00.txt"),
            // Encoded words.
            (#"attachment; filename="=?UTF-8?Q?na=C3=AFve_file.txt?=""#, "naïve file.txt"),
            (#"attachment; filename="=?utf-8?B?4oKsLnR4dA==?=""#, "€.txt"),
            (#"attachment; filename="=?iso-8859-1*en?q?=A3.txt?=""#, "£.txt"),
            // A character that is spread over two words, and words of two character sets.
            (#"attachment; filename="=?UTF-8?Q?=E2=82?= =?UTF-8?Q?=AC.txt?=""#, "€.txt"),
            (#"attachment; filename="=?ISO-8859-1?Q?=A3?= =?UTF-8?Q?=E2=82=AC?=""#, "£€"),
            (#"attachment; filename="=?KOI8-R?Q?=A3?=""#, "=?KOI8-R?Q?=A3?="),
            (#"attachment; filename="=?UTF-8?Q?a=2Fb?=""#, "=?UTF-8?Q?a=2Fb?="),
            (#"attachment; filename="=?UTF-8?Q?unended""#, "=?UTF-8?Q?unended"),
            (#"attachment; filename="=?UTF-8?X?a?=""#, "=?UTF-8?X?a?="),
        ])
    func odd(value: String, name: String) {
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
        let words = String(repeating: "=?UTF-8?Q?a?= ", count: 20_000)
        #expect(ContentDisposition.fileName("attachment; filename=\"\(words)\"")?.hasPrefix("=?") == true)
    }
}
