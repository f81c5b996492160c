import Testing

@testable import TaskModel

@Suite("Logins of a netrc file")
struct NetrcTests {
    private func parse(_ text: String) throws(FieldError) -> Netrc { try Netrc(parsing: text) }

    @Test("machines, the default, quotes, comments, accounts and macros are read")
    func whole() throws {
        let netrc = try parse(
            """
            # a comment with machine x login y
            machine Example.org login ann password "a \\"b\\" c\\\\d" # at home
            machine h:8443
              login
              ben
              password #1
              account none
            macdef init
            machine fake login fake

            machine ::1 login six password 6
            machine example.org login second password counts-not
            default login any password thing

            """)
        #expect(netrc.login(forHost: "example.org", port: 443) == .init(user: "ann", password: "a \"b\" c\\d"))
        #expect(netrc.login(forHost: "h", port: 8443) == .init(user: "ben", password: "#1"))
        #expect(netrc.login(forHost: "h", port: 443) == nil && netrc.login(forHost: "fake", port: 443) == nil)
        #expect(netrc.login(forHost: "[::1]", port: 443)?.user == "six")
        #expect(netrc.fallback == .init(user: "any", password: "thing"))
        #expect(netrc.machines.count == 3)
        #expect(try parse("machine h login a").machines == ["h": .init(user: "a")])
        #expect(try parse("machine h\r\n\tpassword p\r\n").machines == ["h": .init(password: "p")])
    }

    @Test(
        "faults name their line and nothing of the text",
        arguments: [
            ("login ann", "line 1 has a login before the first machine"),
            ("machine h\nlogin a passwort s3cret", "line 2 has a word that is not machine"),
            ("machine h login", "line 1 has a login without a value"), ("machine", "line 1 has a machine without"),
            ("", "names no machine"), ("# nothing", "names no machine"),
            ("machine h login \"s3cret\u{1}\"", "line 1 has a login without a value, or with a control character"),
        ])
    func faults(text: String, words: String) {
        do throws(FieldError) {
            _ = try parse(text)
            Issue.record("was read")
        } catch {
            #expect(error.field == "netrc" && error.message.hasPrefix(words), "\(error.message)")
            #expect(!error.message.contains("s3cret"))
        }
    }

    @Test("size and number of machines are limited")
    func limits() {
        #expect(throws: FieldError.self) { try parse(String(repeating: "#", count: Netrc.maximumLength + 1)) }
        let many = (0...Netrc.maximumMachines).map { "machine h\($0) login a\n" }.joined()
        #expect(throws: FieldError.self) { try parse(many) }
    }
}
