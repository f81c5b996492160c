import ArgumentParser
import TaskModel
import Testing

@testable import dlctl

@Suite("The selection of events")
struct EventOptionsTests {
    @Test("a user is given by name or uid", arguments: ["root", "0"])
    func owner(text: String) throws {
        #expect(try EventOptions.parse(["--owner", text]).filter(ids: []).owner == 0)
    }

    @Test("a user who does not exist is refused by name")
    func unknownOwner() throws {
        let options = try EventOptions.parse(["--owner", "no-such-user-x"])
        let failure = #expect(throws: Failure.self) { try options.filter(ids: []) }
        #expect(failure?.message.contains("--owner: there is no user \"no-such-user-x\"") == true)
    }
}
