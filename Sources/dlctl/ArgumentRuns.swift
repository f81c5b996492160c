import ArgumentParser
import TaskModel

/// Hands long rows of ids or URLs to the parser as one argument each: its time grows with the square of their
/// number, and `dlctl wait $(cat ids)` may bring ten thousand.
enum ArgumentRuns {
    /// No argument of a program can hold it.
    private static let separator: Character = "\0"

    private static let commands: Set<String> = [
        "add", "upload", "show", "wait", "pause", "resume", "set", "cancel", "retry", "remove",
    ]

    /// Joins neighbours that are neither options nor, standing right after one, perhaps its value.
    static func join(_ arguments: [String]) -> [String] {
        guard let command = commandIndex(arguments), commands.contains(arguments[command]) else { return arguments }
        var joined = Array(arguments[...command])
        var run: [String] = []
        var followsOption = false
        func closed() -> [String] { run.isEmpty ? [] : [run.joined(separator: String(separator))] }
        for argument in arguments[(command + 1)...] {
            let isOption = argument.hasPrefix("-")
            if isOption || followsOption {
                joined += closed() + [argument]
                run = []
            } else {
                run.append(argument)
            }
            followsOption = isOption
        }
        return joined + closed()
    }

    /// Undoes ``join(_:)`` for one argument.
    static func split(_ argument: String) -> [String] {
        argument.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }

    /// Where the command's name stands: after the options that may precede it.
    static func commandIndex(_ arguments: [String]) -> Int? {
        var index = 0
        while index < arguments.count {
            guard arguments[index].hasPrefix("-") else { return index }
            index += arguments[index] == "--socket" ? 2 : 1
        }
        return nil
    }
}

/// Ids as they stand on the command line, one or a joined row of them.
struct TaskIDs: ExpressibleByArgument {
    let ids: [TaskID]
    /// The first word that is no id.
    let fault: String?

    init(argument: String) {
        let words = ArgumentRuns.split(argument)
        ids = words.compactMap { Self.id($0) }
        fault = words.first { Self.id($0) == nil }
    }

    static func id(_ word: String) -> TaskID? {
        guard !word.isEmpty, word.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(word).map { TaskID($0) }
    }
}

extension [TaskIDs] {
    var ids: [TaskID] { flatMap(\.ids) }

    /// - Throws: what the argument parser reports as a wrong use.
    func validate() throws {
        if let fault = lazy.compactMap(\.fault).first {
            throw ValidationError("id: '\(fault)' is not the id of a task, a whole number.")
        }
    }
}
