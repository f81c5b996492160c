import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc
import TaskModel

struct List: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists tasks, oldest first.",
        discussion: """
            --sort reads every matching task and sorts in dlctl, which keeps at most 50,000 tasks in memory: with \
            --limit N it shows the first N of the order out of any number, without it the command is refused if more \
            match. Unknown values come last.

            --queue lists the queued tasks in the order in which they will start: users take turns; of one user's \
            tasks the higher priority comes first, batches of the same priority take turns, and then the position \
            counts (see dlctl move). It assumes that the running tasks end in the order in which they started; a task \
            whose host is busy or on hold is overtaken. The first 10,000 tasks are listed.

            EXAMPLES:
              dlctl list --limit 20                        the newest 20 tasks
              dlctl list failed waiting                    the tasks in one of these states
              dlctl list --sort -bytesTotal --limit 10     the 10 largest tasks
              dlctl list --columns id,bytesTotal,finishedAt,path completed
              dlctl list --queue                           what starts next
              dlctl list --json --batch nightly | jq '.[].path'
            """)

    @Argument(
        help: ArgumentHelp(
            """
            List tasks in one of these states: \(TaskState.allCases.map(\.rawValue).joined(separator: ", ")).
            """, valueName: "state"),
        completion: .list(TaskState.allCases.map(\.rawValue)))
    var words: [String] = []

    @OptionGroup var selection: FilterOptions

    @Option(
        help: ArgumentHelp(
            "List at most N tasks: the newest; the next with --after; the first with --sort or --queue.",
            valueName: "n"))
    var limit: Int?

    @Option(help: ArgumentHelp("List tasks with a greater id than this.", valueName: "id"))
    var after: TaskID?

    @Option(
        help: ArgumentHelp(
            "Show these fields of a task's JSON as columns, separated by commas.", valueName: "name,…"))
    var columns: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Sort by this field of a task's JSON; -field for descending order.", valueName: "field"))
    var sort: String?

    @Flag(help: "Reverse the order.")
    var reverse = false

    @Flag(help: "List the queued tasks in the order in which they will start.")
    var queue = false

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit: \"\(limit)\" is not a positive whole number.") }
        for word in words where TaskState(rawValue: word) == nil { throw ValidationError(Self.fault(inState: word)) }
        guard queue else { return }
        if sort != nil { throw ValidationError("Give --queue or --sort, not both.") }
        if reverse { throw ValidationError("--reverse: does not apply to --queue.") }
        if after != nil { throw ValidationError("--after: does not apply to --queue.") }
        guard (states ?? []).allSatisfy({ $0 == .queued }) else {
            throw ValidationError("--queue: lists queued tasks alone; leave the states out.")
        }
    }

    private static func fault(inState word: String) -> String {
        let states = TaskState.allCases.map(\.rawValue)
        if TaskIDs.id(word) != nil { return "state: \"\(word)\" is not a state; see \"dlctl show \(word)\"." }
        if word == "all" { return "state: \"all\" is not a state; \"dlctl list\" lists all tasks." }
        let nearest = TaskState.meant(by: word).map { "; did you mean \($0)?" }
        return "state: \"\(word)\" is not a state\(nearest ?? ": \(states.joined(separator: ", ")).")"
    }

    private var states: [TaskState]? {
        let all = selection.states + words.compactMap { TaskState(rawValue: $0) }
        return all.isEmpty ? nil : all
    }

    func perform(_ context: Context) throws {
        var filter = try selection.filter()
        filter.states = states
        if columns != nil, context.json {
            throw Failure.usage("--columns: applies to the table; --json prints every field", field: "--columns")
        }
        let fields = try columns.map { text throws(Failure) in try ListField.list(text, option: "--columns") }
        var order = try sort.map { text throws(Failure) in try SortedTasks.Order.parse(text) }
        if reverse {
            order = order ?? SortedTasks.Order(field: .id)
            order?.isDescending.toggle()
        }
        let client = try context.connect()
        var printer: any TaskPrinter =
            context.json ? TaskArray(context.output) : ListTable(context.output, fields: fields, isQueue: queue)
        if queue {
            try readQueue(client, filter, &printer)
        } else if let order {
            var tasks = try SortedTasks(by: order, limit: limit)
            var hasSeveralOwners = false
            try client.forEachResult(parameters(filter)) { result in
                hasSeveralOwners = result.severalOwners ?? false
                try tasks.add(result.tasks)
                return true
            }
            printer.add(tasks.finish(), hasSeveralOwners: hasSeveralOwners && filter.owner == nil)
        } else {
            var parameters = parameters(filter)
            parameters.limit = limit
            parameters.newest = after == nil ? limit : nil
            try client.forEachResult(parameters) { result in
                printer.add(result.tasks, hasSeveralOwners: result.severalOwners == true && filter.owner == nil)
                return true
            }
        }
        let note = printer.end(noTasks: filter == TaskFilter() ? "no tasks" : "no matching tasks")
        context.output.flush()
        note.forEach(context.note)
    }

    private func parameters(_ filter: TaskFilter) -> TaskListParameters {
        TaskListParameters(filter: filter == TaskFilter() ? nil : filter, after: after)
    }

    private func readQueue(
        _ client: ControlClient, _ filter: TaskFilter, _ printer: inout any TaskPrinter
    ) throws {
        var seen: Set<TaskID> = []
        let parameters = TaskListParameters(
            filter: filter == TaskFilter() ? nil : filter, limit: limit, order: .queue)
        try client.forEachResult(parameters) { result in
            // A task may have moved between two pages.
            let new = result.tasks.filter { seen.insert($0.id).inserted }
            printer.add(new, hasSeveralOwners: result.severalOwners == true && filter.owner == nil)
            return !new.isEmpty
        }
    }

    /// Returns advice on tasks whose URLs have expired; `nil` if there are none.
    static func note(expired: [TaskID]) -> String? {
        guard let first = expired.first else { return nil }
        if expired.count == 1 { return "task \(first): the URL has expired; \(Describe.remedyForExpired("\(first)"))" }
        return "\(expired.count) tasks: the URLs have expired; \(Describe.remedyForExpired("ID"))"
    }
}
