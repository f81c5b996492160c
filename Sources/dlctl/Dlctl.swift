import ArgumentParser
import ControlProtocol
import Glibc
import TaskModel

/// The command-line tool, for use by people and scripts.
@main
struct Dlctl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dlctl",
        abstract: "Tells the download daemon what to do, and shows what it does.",
        discussion: """
            EXAMPLES:
              dlctl add https://example.org/a.iso          queue a download, print its id
              dlctl add --wait https://example.org/b.iso   queue it and watch it arrive
              dlctl list --state active                    what runs
              dlctl wait 7 8                               block until both have ended

            The socket is --socket, else $DLD_SOCKET, else the user's own daemon if it answers, else \
            /run/dld/dld.sock. --socket and --json may stand before or after the command.

            EXIT STATUS: 0 done; 1 a task failed, an id is unknown, or the request was refused; 64 usage or a \
            rejected argument; 69 no daemon; 75 timed out; 77 not permitted; 130 Ctrl-C, which ends the waiting \
            and never the task.
            """,
        version: ProductVersion.version,
        groupedSubcommands: [
            CommandGroup(name: "Adding", subcommands: [Add.self, Upload.self, Queue.self]),
            CommandGroup(name: "Looking", subcommands: [List.self, Show.self, Wait.self]),
            CommandGroup(
                name: "Steering",
                subcommands: [
                    Pause.self, Resume.self, SetCommand.self, Move.self, Cancel.self, Retry.self, Remove.self,
                ]),
            CommandGroup(
                name: "The daemon",
                subcommands: [
                    Status.self, LimitCommand.self, Reload.self, Shutdown.self, RPC.self, Completion.self,
                ]),
        ])

    @OptionGroup var global: GlobalOptions

    static func main() {
        Terminal.handleInterrupts()
        let json = CommandLine.arguments.prefix { $0 != "--" }.contains("--json")
        do {
            let arguments = try CommandWords.own()
            var command = try parseAsRoot(ArgumentRuns.join(arguments))
            try command.run()
        } catch {
            end(with: error, json: json)
        }
    }

    private static var commandNames: [String] {
        configuration.groupedSubcommands.flatMap(\.subcommands).map { $0._commandName } + ["help"]
    }

    /// Returns the command that the arguments name.
    private static func command(in arguments: [String]) -> (any ParsableCommand.Type)? {
        guard let index = ArgumentRuns.commandIndex(arguments) else { return nil }
        let commands = configuration.groupedSubcommands.flatMap(\.subcommands)
        guard let command = commands.first(where: { $0._commandName == arguments[index] }) else { return nil }
        let rest = Array(arguments[(index + 1)...])
        let words = command.configuration.subcommands
        guard !words.isEmpty, let next = ArgumentRuns.commandIndex(rest) else { return command }
        return words.first { $0._commandName == rest[next] } ?? command
    }

    private static func end(with error: any Error, json: Bool) -> Never {
        if let failure = error as? Failure ?? (error as? CommandWords.Unreadable).map({ .usage("\($0)") }) {
            failure.report(json: json)
            Glibc.exit(failure.status.rawValue)
        }
        if let status = error as? ExitStatus { Glibc.exit(status.rawValue) }
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let failure = failure(of: error, arguments) else {
            let output = Output(STDOUT_FILENO)
            output.line(fullMessage(for: error))
            output.flush()
            Glibc.exit(0)
        }
        failure.report(json: json)
        Glibc.exit(ExitStatus.usage.rawValue)
    }

    /// Returns the failure for an error of the argument parser; `nil` if it is not an error, as with `--help`.
    static func failure(of error: any Error, _ arguments: [String]) -> Failure? {
        if let unknown = Failure(unknownCommandIn: arguments, among: commandNames) { return unknown }
        guard exitCode(for: error) != .success else { return nil }
        return Failure(
            parsing: message(for: error), full: fullMessage(for: error), arguments: arguments,
            help: command(in: arguments).map { helpMessage(for: $0) })
    }
}
