import ArgumentParser
import Glibc
import TaskModel

/// The command-line tool, for use by people and scripts.
@main
enum Dlctl {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let words = Result { () throws(CommandWords.Unreadable) in try CommandWords.own() }
        ProcessArguments.hideSecrets()
        Terminal.handleInterrupts()
        do {
            var command = try RootCommand.parseAsRoot(ArgumentRuns.join(try words.get()))
            try command.run()
        } catch {
            end(with: error, arguments)
        }
    }

    private static var commandNames: [String] {
        RootCommand.configuration.groupedSubcommands.flatMap(\.subcommands).map { $0._commandName } + ["help"]
    }

    /// Returns the command that the arguments name.
    private static func command(in arguments: [String]) -> (any ParsableCommand.Type)? {
        guard let index = ArgumentRuns.commandIndex(arguments) else { return nil }
        let commands = RootCommand.configuration.groupedSubcommands.flatMap(\.subcommands)
        guard let command = commands.first(where: { $0._commandName == arguments[index] }) else { return nil }
        let rest = Array(arguments[(index + 1)...])
        let words = command.configuration.subcommands
        guard !words.isEmpty, let next = ArgumentRuns.commandIndex(rest) else { return command }
        return words.first { $0._commandName == rest[next] } ?? command
    }

    private static func end(with error: any Error, _ arguments: [String]) -> Never {
        let json = arguments.prefix { $0 != "--" }.contains("--json")
        if let failure = error as? Failure ?? (error as? CommandWords.Unreadable).map({ .usage("\($0)") }) {
            failure.report(json: json)
            Glibc.exit(failure.status.rawValue)
        }
        if let status = error as? ExitStatus { Glibc.exit(status.rawValue) }
        guard let failure = failure(of: error, arguments) else {
            let output = Output(STDOUT_FILENO)
            output.line(RootCommand.fullMessage(for: error))
            output.flush()
            Glibc.exit(0)
        }
        failure.report(json: json)
        Glibc.exit(ExitStatus.usage.rawValue)
    }

    /// Returns the failure for an error of the argument parser; `nil` if it is not an error, as with `--help`.
    static func failure(of error: any Error, _ arguments: [String]) -> Failure? {
        if let option = Failure(completionOptionIn: arguments) { return option }
        if let unknown = Failure(unknownCommandIn: arguments, among: commandNames) { return unknown }
        guard RootCommand.exitCode(for: error) != .success else { return nil }
        return Failure(
            parsing: RootCommand.message(for: error), full: RootCommand.fullMessage(for: error), arguments: arguments,
            help: command(in: arguments).map { RootCommand.helpMessage(for: $0) })
    }
}
