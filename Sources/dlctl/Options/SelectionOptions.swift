import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

/// The options that select tasks for `pause`, `resume`, `set`, `cancel`, `retry` and `remove`, by ids or by a filter.
struct SelectionOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The ids of the tasks, ranges such as 3-5, or states such as failed.", valueName: "id|state"),
        completion: .taskIDs)
    var arguments: [TaskIDs] = []

    @Flag(help: "Select every task to which the command applies.")
    var all = false

    @OptionGroup var filter: FilterOptions

    @Flag(name: .shortAndLong, help: "Do not ask for confirmation of many tasks or other users' tasks.")
    var yes = false

    @Flag(help: "List the tasks that would be changed without changing them.")
    var dryRun = false

    init() {}

    func validate() throws {
        try arguments.validate(acceptsStates: true)
        // Beside ids, --batch is the new batch of `set`; ``refuseBatchOfIDs()`` refuses it for the other commands.
        var filter = filter
        if arguments.haveIDs { filter.batch = nil }
        let filtered = all || !filter.isEmpty || !arguments.states.isEmpty
        if !arguments.haveIDs && !filtered {
            throw ValidationError(
                "Select the tasks: ID…, STATE…, --all, --batch NAME, --search TEXT, --since TIME.")
        }
        if arguments.haveIDs && filtered {
            throw ValidationError(Self.both)
        }
    }

    private static let both = "Give ids or a filter (a state, --all, --batch, …), not both."

    func refuseBatchOfIDs() throws(Failure) {
        if arguments.haveIDs, filter.batch != nil { throw .usage(Self.both, field: "--batch") }
    }

    private static let idsPerCall = 10_000

    /// Returns the calls to make. Duplicate ids are dropped, and ids are divided so that no call exceeds the line
    /// length.
    ///
    /// - Parameter connect: connects to the daemon, which knows the ids in a range.
    func calls(
        deleteFile: Bool? = nil, now: Bool? = nil, _ connect: () throws(ClientError) -> ControlClient
    ) throws -> [TaskSelectionParameters] {
        guard arguments.haveIDs else {
            var filter = filter
            filter.states += arguments.states
            return [TaskSelectionParameters(filter: try filter.filter(), deleteFile: deleteFile, now: now)]
        }
        var seen: Set<TaskID> = []
        let distinct = try arguments.known(connect).filter { seen.insert($0).inserted }
        return stride(from: 0, to: distinct.count, by: Self.idsPerCall).map {
            TaskSelectionParameters(
                ids: Array(distinct[$0..<min($0 + Self.idsPerCall, distinct.count)]), deleteFile: deleteFile, now: now)
        }
    }
}
