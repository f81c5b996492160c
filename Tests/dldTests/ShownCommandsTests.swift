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

    @Test("a fault in the command line is one line with a hint, as of dlctl")
    func faults() {
        #expect(fault("--nope") == "unknown option \"--nope\"; see \"dld --help\"")
        #expect(fault("--socke", "/s").hasPrefix("unknown option \"--socke\"; did you mean \"--socket\"?"))
        #expect(fault("--exit-when-done") == "--exit-when-done needs --queue FILE; see \"dld --help\"")
    }

    private func fault(_ arguments: String...) -> String {
        do {
            _ = try Dld.parseAsRoot(arguments)
            return ""
        } catch {
            return Dld.usageFault(Dld.message(for: error))
        }
    }
}
