import TestSupport
import Testing

@testable import HTTPMessages

@Suite("Links that an answer names (RFC 8288)")
struct LinkHeaderTests {
    private func parse(_ text: String) -> [Link] { LinkHeader.parse(text.utf8) }

    private func link(_ target: String, _ parameters: (String, String)...) -> Link {
        Link(target: target, parameters: parameters.map { Link.Parameter(name: $0.0, value: $0.1) })
    }

    @Test("the examples of section 3.5")
    func examples() throws {
        let first = try #require(
            parse(#"<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter""#).first)
        #expect(first.target == "http://example.com/TheBook/chapter2")
        #expect(first.relations == ["previous"])
        #expect(first.value(of: "title") == "previous chapter")
        #expect(parse(#"</>; rel="http://example.net/foo""#) == [link("/", ("rel", "http://example.net/foo"))])
        #expect(parse(##"</terms>; rel="copyright"; anchor="#foo""##).first?.anchor == "#foo")
        let titled = parse(
            "</TheBook/chapter2>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, "
                + "</TheBook/chapter4>; rel=\"next\"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel")
        #expect(titled.map(\.relations) == [["previous"], ["next"]])
        #expect(titled[1].value(of: "title*") == "UTF-8'de'n%c3%a4chstes%20Kapitel")
        #expect(
            parse(#"<http://example.org/>; rel="start http://example.net/relation/other""#).first?.relations
                == ["start", "http://example.net/relation/other"])
        #expect(parse(#"<https://example.org/>; rel="start", <https://example.org/index>; rel="index""#).count == 2)
    }

    @Test("mirrors as Metalink names them (RFC 6249)")
    func mirrors() {
        let links = parse(
            #"<http://www2.example.com/example.ext>; rel=duplicate; pri=1; pref, "#
                + #"<ftp://ftp.example.com/example.ext> ; Rel = "DUPLICATE" ;pri=2;geo=gb"#)
        #expect(links.map(\.relations) == [["duplicate"], ["duplicate"]])
        #expect(links.first?.value(of: "pref") == "")
        #expect(links.last?.value(of: "geo") == "gb")
    }

    @Test("commas, semicolons, quotes and brackets in their places part nothing")
    func separators() {
        #expect(parse("<a,b;c>;t=\"x,<y>;\\\"z\\\\\";u=v") == [link("a,b;c", ("t", "x,<y>;\"z\\"), ("u", "v"))])
        #expect(parse(",, <a> ,\t, <b>,") == [link("a"), link("b")])
        #expect(parse("<a>;;;x;=y;z=") == [link("a", ("x", ""), ("z", ""))])
        #expect(parse("<a> junk ; x=y, <b>") == [link("a"), link("b")])
        #expect(parse("<>; rel=self") == [link("", ("rel", "self"))])
        #expect(parse("< a >") == [link("a")])
    }

    @Test("of several relations in several parameters the first parameter counts")
    func firstRelation() {
        #expect(parse("<a>; rel=next; rel=prev").first?.relations == ["next"])
        #expect(parse("<a>").first?.relations == [])
        #expect(parse("<a>; rel=\"\u{9} A  b\"").first?.relations == ["a", "b"])
    }

    @Test(
        "what is no link is none, and what comes before it stays",
        arguments: ["", " ", "a", "<a", "<", ">", "a>; rel=next", ";", "\"<a>\"", ",;,"])
    func none(text: String) {
        #expect(parse(text) == [])
        #expect(parse("<first>, " + text).first?.target == "first")
    }

    @Test("an unended string goes to the end, and a lone backslash is itself")
    func unended() {
        #expect(parse("<a>; t=\"x, <b>") == [link("a", ("t", "x, <b>"))])
        #expect(parse("<a>; t=\"x\\") == [link("a", ("t", "x\\"))])
    }

    @Test("targets with blanks, control characters or bytes of no encoding are passed over")
    func badTargets() {
        #expect(parse("<a b>, <a\u{0}>, <a\u{7F}>, <a\r\nb>, <ok>").map(\.target) == ["ok"])
        #expect(LinkHeader.parse([0x3C, 0xFF, 0x3E, 0x2C, 0x3C, 0x61, 0x3E]).map(\.target) == ["a"])
        #expect(parse("<ü\u{301}>").map(\.target) == ["ü\u{301}"])
    }

    @Test("limits hold, and long fields take no longer than their length allows")
    func limits() {
        #expect(parse(String(repeating: "<a>,", count: 60_000)).count == LinkHeader.maximumLinks)
        let many = parse("<a>" + String(repeating: ";x=y", count: 60_000) + ",<b>")
        #expect(many.first?.parameters.count == LinkHeader.maximumParameters)
        #expect(many.last?.target == "b")
        for piece in ["<", "<>", ";", "<a>;", "=", "\"", "\\", "<a>;x=\"", ",", " ", "<a>;x=\"\\"] {
            _ = parse(String(repeating: piece, count: 200_000 / piece.utf8.count))
        }
    }

    @Test("an answer's links come from all its lines, in order")
    func lines() {
        let answer = head(200, ["Link: <a>; rel=x, <b>", "Content-Length: 1", "LINK: <c>", "Linked: <d>"])
        #expect(answer.links.map(\.target) == ["a", "b", "c"])
        #expect(head(200).links == [])
        let many = head(200, Array(repeating: "Link: <a>,<b>,<c>", count: 200))
        #expect(many.links.count == LinkHeader.maximumLinks)
    }
}
