import ArgumentParser
import TestSupport
import Testing

@testable import dld

/// The commands that the documentation and the help show.
@Suite struct ShownCommandsTests {
    @Test("the program takes every command that the documentation and the help show, and the help fits 80 columns")
    func commands() throws {
        let help = Dld.helpMessage(columns: 80)
        var commands = ShownCommands.commands(of: "dld", inHelp: help)
        for document in try ShownCommands.documents() {
            commands += try ShownCommands.commands(of: "dld", inDocument: document)
        }
        #expect(commands.count > 3)
        for command in commands { _ = try Dld.parse(ShownCommands.arguments(of: command)) }
        for line in help.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
    }
}
