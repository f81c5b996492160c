import Testing

@testable import HTTPCaching

@Suite("Cache-Control")
struct CacheControlTests {
    @Test("directives of one line or several, in any letter case, quoted or not")
    func directives() {
        let control = CacheControl([" Max-Age = 60 ,no-cache=\"Set-Cookie, X\"", "PUBLIC,, private ", ""])
        #expect(control.seconds("max-age", invalid: -1) == 60)
        #expect(control.contains("no-cache") && control.contains("public") && control.contains("private"))
        #expect(!control.contains("x") && !control.contains(""))
        #expect(control.isBare("public") && !control.isBare("no-cache") && !control.isBare("absent"))
        #expect(CacheControl(["max-age=\"7\""]).seconds("max-age", invalid: -1) == 7)
        #expect(CacheControl([]).isEmpty)
    }

    @Test("the first of two counts")
    func first() {
        #expect(CacheControl(["max-age=1, max-age=2", "max-age=3"]).seconds("max-age", invalid: -1) == 1)
    }

    @Test(
        "seconds that are no number are invalid, too many are the greatest",
        arguments: [
            ("max-age", -1), ("max-age=", -1), ("max-age=-5", -1), ("max-age=1.5", -1), ("max-age=+1", -1),
            ("max-age=1x", -1), ("max-age=\"7", 7), ("max-age=0", 0), ("max-age=99999999999999999999", 1 << 31),
            ("max-age=٣", -1),
        ] as [(String, Int64)])
    func seconds(text: String, value: Int64) {
        #expect(CacheControl([text]).seconds("max-age", invalid: -1) == value)
    }

    @Test("long fields are bounded")
    func long() {
        let many = (0..<1000).map { "d\($0)" }.joined(separator: ",")
        #expect(CacheControl([many]).contains("d\(CacheControl.maximumDirectives - 1)"))
        #expect(!CacheControl([many]).contains("d\(CacheControl.maximumDirectives)"))
        for piece in ["=", ",", "\"", "a=\"", "\\"] { _ = CacheControl([String(repeating: piece, count: 200_000)]) }
    }
}
