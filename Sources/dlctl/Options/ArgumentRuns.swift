import ArgumentParser
import TaskModel

/// Joins long runs of ids or URLs into single arguments for the parser. The parser's run time grows with the square of
/// the number of arguments, and `dlctl wait $(cat ids)` may pass ten thousand.
enum ArgumentRuns {
    /// A NUL character, which no program argument can contain.
    private static let separator: Character = "\0"

    private static let commands: Set<String> = [
        "add", "upload", "show", "wait", "watch", "pause", "resume", "set", "cancel", "retry", "remove",
    ]

    /// Joins neighbouring arguments, except options and arguments directly after an option, which may be its value.
    static func join(_ arguments: [String]) -> [String] {
        // The arguments of a shell's completion script are a command line in themselves.
        guard arguments.first != "---completion" else { return arguments }
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

    /// Splits one argument into those that ``join(_:)`` joined.
    static func split(_ argument: String) -> [String] {
        argument.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }

    /// Returns the index of the command's name, which follows the global options, or `nil` if there is no command.
    static func commandIndex(_ arguments: [String]) -> Int? {
        var index = 0
        while index < arguments.count {
            guard arguments[index].hasPrefix("-") else { return index }
            index += GlobalOptions.valueOptions.contains(arguments[index]) ? 2 : 1
        }
        return nil
    }
}

/// Task ids, and states in the place of ids, from a command-line argument, which ``ArgumentRuns`` may have joined.
struct TaskIDs: ExpressibleByArgument {
    let ids: [TaskID]
    let states: [TaskState]
    /// The words that are not valid ids.
    let others: [String]

    init(argument: String) {
        let words = ArgumentRuns.split(argument)
        ids = words.compactMap { Self.id($0) }
        others = words.filter { Self.id($0) == nil }
        states = others.compactMap { TaskState(rawValue: $0) }
    }

    static func id(_ word: String) -> TaskID? {
        guard !word.isEmpty, word.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(word).map { TaskID($0) }
    }
}

extension [TaskIDs] {
    var ids: [TaskID] { flatMap(\.ids) }
    var states: [TaskState] { flatMap(\.states) }

    /// - Parameter acceptsStates: whether states may stand in the place of ids.
    /// - Throws: `ValidationError`, which the argument parser reports as a usage error.
    func validate(acceptsStates: Bool = false) throws {
        let fault = lazy.flatMap(\.others).first { !acceptsStates || TaskState(rawValue: $0) == nil }
        guard let fault else { return }
        guard acceptsStates else { throw ValidationError("id: \"\(fault)\" is not a task id (a whole number).") }
        let states = TaskState.allCases.map(\.rawValue)
        let nearest = NearestWord.to(fault, among: states).map { "; did you mean \($0)?" } ?? "."
        throw ValidationError("id: \"\(fault)\" is not a task id (a whole number) or a state\(nearest)")
    }
}
