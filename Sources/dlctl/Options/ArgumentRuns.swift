import ArgumentParser
import ControlClient
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

/// Task ids and ranges of them, and states in the place of ids, from a command-line argument, which ``ArgumentRuns`` may
/// have joined.
struct TaskIDs: ExpressibleByArgument {
    /// A single id is a range of one.
    let ranges: [ClosedRange<Int64>]
    let states: [TaskState]
    /// The words that are not valid ids.
    let others: [String]

    /// The maximum number of ids that a range spans.
    static let widestRange: Int64 = 10_000

    init(argument: String) {
        let words = ArgumentRuns.split(argument)
        ranges = words.compactMap { Self.range($0) }
        others = words.filter { Self.range($0) == nil }
        states = others.compactMap { TaskState(rawValue: $0) }
    }

    static func id(_ word: some StringProtocol) -> TaskID? {
        guard !word.isEmpty, word.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(word).map { TaskID($0) }
    }

    /// Returns the ids of `7` or `7-9`.
    private static func range(_ word: String) -> ClosedRange<Int64>? {
        let ends = word.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { id($0)?.rawValue }
        guard let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last else { return nil }
        return first...last
    }
}

extension [TaskIDs] {
    private var ranges: [ClosedRange<Int64>] { flatMap(\.ranges) }
    /// All ids, also those of ranges that no task has.
    var ids: [TaskID] { ranges.flatMap { $0.map { TaskID($0) } } }
    var haveIDs: Bool { contains { !$0.ranges.isEmpty } }
    var states: [TaskState] { flatMap(\.states) }

    /// The task id, if there is a single one and no range.
    var single: TaskID? {
        let ranges = ranges
        return ranges.count == 1 && ranges[0].lowerBound == ranges[0].upperBound ? TaskID(ranges[0].lowerBound) : nil
    }

    /// Returns the single ids, and those of each range that a task has.
    ///
    /// - Throws: ``Failure`` for a range of which no task has an id.
    func known(_ connect: () throws(ClientError) -> ControlClient) throws -> [TaskID] {
        let ranges = ranges
        guard ranges.contains(where: { $0.lowerBound < $0.upperBound }) else { return ids }
        let client = try connect()
        return try ranges.flatMap { range -> [TaskID] in
            guard range.lowerBound < range.upperBound else { return [TaskID(range.lowerBound)] }
            var found: [TaskID] = []
            try client.forEachPage(limit: range.count, after: TaskID(Swift.max(0, range.lowerBound - 1))) { page in
                found += page.map(\.id).filter { range.contains($0.rawValue) }
                return page.last.map { $0.id.rawValue < range.upperBound } ?? false
            }
            guard !found.isEmpty else {
                throw Failure(
                    .failed, code: .unknownTask, field: "id",
                    "no task has an id from \(range.lowerBound) to \(range.upperBound); see `dlctl list`")
            }
            return found
        }
    }

    /// - Parameters:
    ///   - acceptsStates: whether states may stand in the place of ids.
    ///   - all: what selects all tasks.
    /// - Throws: `ValidationError`, which the argument parser reports as a usage error.
    func validate(acceptsStates: Bool = false, all: String = "--all") throws {
        if let wide = ranges.first(where: { $0.upperBound - $0.lowerBound >= TaskIDs.widestRange }) {
            throw ValidationError(
                "id: \"\(wide.lowerBound)-\(wide.upperBound)\" is wider than \(TaskIDs.widestRange) ids; give less.")
        }
        let fault = lazy.flatMap(\.others).first { !acceptsStates || TaskState(rawValue: $0) == nil }
        guard let fault else { return }
        guard acceptsStates else {
            throw ValidationError("id: \"\(fault)\" is not a task id (a whole number) or a range such as 3-5.")
        }
        let meant = fault == "all" ? all : TaskState.meant(by: fault)
        let nearest = meant.map { "; did you mean \($0)?" } ?? "."
        throw ValidationError(
            "id: \"\(fault)\" is not a task id (a whole number), a range such as 3-5 or a state\(nearest)")
    }
}
