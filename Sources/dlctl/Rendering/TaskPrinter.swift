import Glibc
import TaskModel

/// The output of a list of tasks, page by page.
protocol TaskPrinter {
    /// - Parameter hasSeveralOwners: whether the list may contain tasks of several owners. The first page decides.
    mutating func add(_ tasks: [TaskStatus], hasSeveralOwners: Bool)

    /// Ends the output.
    ///
    /// - Parameter noTasks: the note on an empty list.
    /// - Returns: the notes for standard error.
    mutating func end(noTasks: String) -> [String]
}

extension TaskArray: TaskPrinter {
    mutating func add(_ tasks: [TaskStatus], hasSeveralOwners: Bool) { add(tasks) }

    mutating func end(noTasks: String) -> [String] {
        end()
        return []
    }
}

/// A table of tasks on standard output.
struct ListTable: TaskPrinter {
    private let output: Output
    private let fields: [ListField]?
    private let isQueue: Bool
    private let width: Int?
    private var columns = TaskColumns()
    private var table: Table?
    private var count = 0
    private var expired: [TaskID] = []

    /// - Parameter fields: the fields to show as columns; `nil` for the usual columns.
    init(_ output: Output, fields: [ListField]?, isQueue: Bool) {
        self.output = output
        self.fields = fields
        self.isQueue = isQueue
        width = Terminal.isTerminal(STDOUT_FILENO) ? Terminal.size(STDOUT_FILENO).columns : nil
    }

    mutating func add(_ tasks: [TaskStatus], hasSeveralOwners: Bool) {
        if tasks.isEmpty { return }
        var table = table ?? makeTable(hasSeveralOwners)
        let now = Clock.now()
        let rows = tasks.enumerated().map { index, task in
            fields?.map { $0.cell(task) } ?? columns.row(task, place: count + index + 1, now: now)
        }
        for line in table.page(rows) { output.line(line) }
        output.flush()
        self.table = table
        count += tasks.count
        for task in tasks where task.state == .paused && task.reason == .urlExpired { expired.append(task.id) }
    }

    private mutating func makeTable(_ hasSeveralOwners: Bool) -> Table {
        columns = TaskColumns(showsOwner: hasSeveralOwners, showsQueue: isQueue)
        guard let fields else { return Table(columns.columns, width: width) }
        return Table(
            fields.enumerated().map { index, field in
                // On a narrow terminal, the columns on the right are left out first.
                field.column(omission: index == 0 ? nil : fields.count - index)
            }, width: width)
    }

    mutating func end(noTasks: String) -> [String] {
        guard let table else { return [isQueue ? "no queued tasks" : noTasks] }
        var notes: [String] = []
        if fields != nil, !table.omitted.isEmpty {
            notes.append("the terminal is too narrow for \(table.omitted.joined(separator: ", "))")
        }
        if let note = List.note(expired: expired) { notes.append(note) }
        return notes
    }
}
