import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc
import TaskModel

struct List: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists tasks, oldest first.",
        discussion: """
            EXAMPLES:
              dlctl list --limit 20                        the newest 20 tasks
              dlctl list --state failed --state cancelled
              dlctl list --json --batch nightly | jq '.[].path'
            """)

    @OptionGroup var selection: FilterOptions

    @Option(help: ArgumentHelp("List at most N tasks: the newest, or with --after the next.", valueName: "n"))
    var limit: Int?

    @Option(help: ArgumentHelp("List tasks with a greater id than this.", valueName: "id"))
    var after: TaskID?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit: '\(limit)' is not a positive whole number.") }
    }

    func perform(_ context: Context) throws {
        let filter = try selection.filter()
        let client = try context.connect()
        if context.json {
            try printJSON(client, filter, context.output)
        } else {
            try printTable(client, filter, context.output)
        }
    }

    private func forEachPage(
        _ client: ControlClient, _ filter: TaskFilter, _ body: ([TaskStatus]) -> Void
    ) throws {
        try client.forEachPage(
            filter: filter == TaskFilter() ? nil : filter, limit: limit, after: after,
            newest: after == nil ? limit : nil
        ) { page in
            body(page)
            return true
        }
    }

    private func printJSON(_ client: ControlClient, _ filter: TaskFilter, _ output: Output) throws {
        var array = TaskArray(output)
        try forEachPage(client, filter) { array.add($0) }
        array.end()
    }

    private func printTable(_ client: ControlClient, _ filter: TaskFilter, _ output: Output) throws {
        let width = Terminal.isTerminal(STDOUT_FILENO) ? Terminal.size(STDOUT_FILENO).columns : nil
        var table = Table(TaskColumns.all, width: width)
        var isEmpty = true
        var expired: [TaskID] = []
        try forEachPage(client, filter) { page in
            let now = Clock.now()
            for line in table.page(page.map { TaskColumns.row($0, now: now) }) { output.line(line) }
            output.flush()
            isEmpty = false
            expired += page.filter { $0.state == .paused && $0.reason == .urlExpired }.map(\.id)
        }
        if let note = isEmpty
            ? (filter == TaskFilter() ? "no tasks" : "no matching tasks") : Self.note(expired: expired)
        {
            Output.note(note)
        }
    }

    /// Returns advice on tasks whose URLs have expired; `nil` if there are none.
    static func note(expired: [TaskID]) -> String? {
        guard let first = expired.first else { return nil }
        if expired.count == 1 { return "task \(first): the URL has expired; \(Describe.remedyForExpired("\(first)"))" }
        return "\(expired.count) tasks: the URLs have expired; \(Describe.remedyForExpired("ID"))"
    }
}
