import ArgumentParser
import TestSupport
import Testing

@testable import dlctl

/// The commands that the documentation and the help show.
@Suite struct ShownCommandsTests {
    private static let types: [any ParsableCommand.Type] = {
        func all(_ command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
            [command] + command.configuration.subcommands.flatMap(all)
        }
        return all(RootCommand.self)
    }()

    private static func help(_ command: any ParsableCommand.Type) -> String {
        RootCommand.helpMessage(for: command, columns: 80)
    }

    /// Returns why the program does not take a command; `nil` if it does.
    private static func fault(in command: String) -> String? {
        let arguments = ShownCommands.arguments(of: command)
        do {
            _ = try RootCommand.parseAsRoot(ArgumentRuns.join(arguments))
            return nil
        } catch {
            return Dlctl.failure(of: error, arguments)?.message
        }
    }

    @Test("the program takes every command that the documentation shows")
    func documents() throws {
        var count = 0
        for document in try ShownCommands.documents() {
            for command in try ShownCommands.commands(of: "dlctl", inDocument: document) {
                count += 1
                let fault = Self.fault(in: command)
                #expect(fault == nil, "\(document): \(command): \(fault ?? "")")
            }
        }
        #expect(count > 50)
    }

    @Test("the program takes every command that the help shows")
    func examples() {
        var count = 0
        for type in Self.types {
            for command in ShownCommands.commands(of: "dlctl", inHelp: Self.help(type)) {
                count += 1
                let fault = Self.fault(in: command)
                #expect(fault == nil, "\(command): \(fault ?? "")")
            }
        }
        #expect(count > 80)
    }

    @Test("every line of the help fits a terminal of 80 columns, and every example stands on one line")
    func width() {
        for type in Self.types {
            let help = Self.help(type)
            for line in help.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
            // The parser breaks longer lines.
            let examples = type.configuration.discussion.split(separator: "\n").filter { $0.hasPrefix("  dlctl ") }
            for example in examples { #expect(help.contains("\(example)\n") || help.hasSuffix(example), "\(example)") }
        }
    }

    @Test("a command ends at a pipe, a redirection and a comment, and quotes hold words together")
    func words() {
        #expect(ShownCommands.arguments(of: "dlctl rpc m '{\"a\": 1}' | jq .a") == ["rpc", "m", "{\"a\": 1}"])
        #expect(
            ShownCommands.arguments(of: "dlctl limit --download none   # no limit") == ["limit", "--download", "none"])
        #expect(ShownCommands.arguments(of: "dlctl set 1 --url 'http://h/?a=1&b=2#c'").last == "http://h/?a=1&b=2#c")
    }
}
