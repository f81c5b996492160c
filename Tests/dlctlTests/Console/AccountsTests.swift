import Glibc
import Testing

@testable import dlctl

@Suite("Users by name") struct AccountsTests {
    @Test("a name and a uid are found in each other; an unknown uid is shown in digits")
    func names() throws {
        #expect(Accounts.name(0) == "root")
        #expect(Accounts.uid(named: "root") == .uid(0))
        #expect(Accounts.name(4_000_000_124) == "4000000124")
        #expect(try UserArgument.uid("root", option: "--owner") == 0)
        #expect(try UserArgument.uid("1000", option: "--owner") == 1000)
    }

    @Test("a user that does not exist is a usage error", arguments: ["no-such-user-x", "", "4294967296"])
    func unknown(text: String) {
        let failure = #expect(throws: Failure.self) { try UserArgument.uid(text, option: "--owner") }
        #expect(failure?.status == .usage && failure?.field == "--owner")
    }
}
