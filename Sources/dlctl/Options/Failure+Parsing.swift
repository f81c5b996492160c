import ArgumentParser
import TaskModel

extension Failure {
    /// Creates a one-line failure from a message of the argument parser.
    ///
    /// - Parameters:
    ///   - message: the parser's error message.
    ///   - full: the message with usage; its last line names the help to read.
    ///   - arguments: the arguments of the command line.
    ///   - help: the help of the command, if the command is known.
    init(parsing message: String, full: String, arguments: [String] = [], help: String? = nil) {
        let hint = full.split(separator: "\n").last { $0.contains("See '") }?
            .split(separator: "'").dropFirst().first.map { "; see \"\($0)\"" }
        var fault = UsageFault(message, arguments: arguments)
        // A missing argument may be the result of an unknown option, which is then reported instead.
        if !message.hasPrefix("Missing value"), !message.hasPrefix("The value"), let help {
            fault = UsageFault(unknownOptionIn: arguments, help: help) ?? fault
        }
        let isAdvised = fault.message.contains("; see ")
        self = .usage(fault.message + (isAdvised ? "" : hint ?? ""), field: fault.field)
    }

    /// Creates a failure for the argument parser's own option for completion scripts, which lack what ``CompletionScript``
    /// adds.
    ///
    /// - Returns: `nil` if the option is not given.
    init?(completionOptionIn arguments: [String]) {
        let option = "--generate-completion-script"
        let options = arguments.prefix { $0 != "--" }
        guard let index = options.firstIndex(where: { $0 == option || $0.hasPrefix(option + "=") }) else { return nil }
        let value = options[index].dropFirst(option.count + 1)
        let word = value.isEmpty ? options[(index + 1)...].first ?? "" : String(value)
        let shell = Completion.Shell(rawValue: word)?.rawValue ?? "SHELL"
        self = .usage("\(option): there is no such option; see \"dlctl completion \(shell)\"", field: option)
    }

    /// The commands that other programs call by these names. A bar separates two.
    private static let otherNames = [
        "ls": "list", "ps": "list", "rm": "remove", "del": "remove", "delete": "remove", "start": "resume",
        "unpause": "resume", "continue": "resume", "stop": "pause|shutdown", "info": "show", "get": "add",
        "download": "add",
        "put": "upload", "log": "events", "kill": "cancel", "quit": "shutdown", "find": "list --search TEXT",
        "search": "list --search TEXT",
    ]

    private static func fault(inQueueCommand word: String) -> Failure? {
        let commands = Queue.configuration.subcommands.map { $0._commandName } + ["help"]
        guard !word.hasPrefix("-"), !commands.contains(word) else { return nil }
        let advice =
            ["show", "get", "tasks"].contains(word)
            ? "the tasks of a batch: \"dlctl list --batch NAME\"" : "see \"dlctl queue --help\""
        return .usage("there is no command \"queue \(word)\"; \(advice)", field: "command")
    }

    /// Creates a failure for an unknown command, which the parser reports as an unexpected argument.
    ///
    /// - Returns: `nil` if the first argument that is not an option is a command.
    init?(unknownCommandIn arguments: [String], among commands: [String]) {
        guard var index = ArgumentRuns.commandIndex(arguments) else { return nil }
        if arguments[index] == "help", index + 1 < arguments.count { index += 1 }
        let word = arguments[index]
        if word == "queue", let fault = Self.fault(inQueueCommand: arguments[(index + 1)...].first ?? "-") {
            self = fault
            return
        }
        guard !commands.contains(word), !word.hasPrefix("-") else { return nil }
        let meant = word.contains("://") ? "add URL" : Self.otherNames[word] ?? NearestWord.to(word, among: commands)
        let nearest = meant.map { "did you mean \"\($0.replacing("|", with: "\" or \""))\"?" }
        self = .usage("there is no command \"\(word)\"; \(nearest ?? "see \"dlctl --help\"")", field: "command")
    }
}
