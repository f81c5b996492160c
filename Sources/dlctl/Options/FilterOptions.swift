import ArgumentParser
import TaskModel

/// The options that select tasks by a filter.
struct FilterOptions: ParsableArguments {
    @Option(name: .customLong("state"), parsing: .singleValue, help: "Select tasks in this state; may be repeated.")
    var states: [TaskState] = []

    @Option(help: ArgumentHelp("Select tasks of this batch.", valueName: "name"), completion: .batches)
    var batch: String?

    @Option(
        help: ArgumentHelp("Select tasks with this text in the URL or path, ignoring case.", valueName: "text"),
        completion: .hosts)
    var search: String?

    @Option(help: ArgumentHelp("Select tasks of this user.", valueName: "name|uid"))
    var owner: String?

    @Option(
        help: ArgumentHelp(
            """
            Select tasks that ended at this time or later, or were added then if they have not ended: 2026-01-31, \
            22:00, or 2h for two hours ago.
            """, valueName: "time"))
    var since: String?

    @Option(help: ArgumentHelp("Select tasks that ended (or were added) before this time.", valueName: "time"))
    var until: String?

    init() {}

    func validate() throws {
        if batch?.isEmpty == true { throw ValidationError("--batch: is empty; give the name of a batch.") }
        if search?.isEmpty == true { throw ValidationError("--search: is empty; give a text to search for.") }
        if let search, search.utf8.count > TaskFilter.maximumSearch {
            throw ValidationError("--search: is longer than \(TaskFilter.maximumSearch) bytes.")
        }
    }

    var isEmpty: Bool {
        states.isEmpty && batch == nil && search == nil && owner == nil && since == nil && until == nil
    }

    func filter() throws(Failure) -> TaskFilter {
        TaskFilter(
            states: states.isEmpty ? nil : states, batch: batch, search: search,
            owner: try owner.map { text throws(Failure) in try UserArgument.uid(text, option: "--owner") },
            since: try since.map { text throws(Failure) in try Clock.past(text, option: "--since") },
            until: try until.map { text throws(Failure) in try Clock.past(text, option: "--until") })
    }
}
