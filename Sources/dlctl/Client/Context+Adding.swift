import ControlClient
import ControlProtocol
import Glibc
import TaskModel

// Operations that `add` and `upload` share after their tasks are known.
extension Context {
    func add(
        _ tasks: [TaskSpecification], names: FieldNames, client: ControlClient
    ) throws(Failure) -> AddedTasks {
        do {
            return AddedTasks(try client.addOrFind(tasks))
        } catch {
            throw Failure(error, names: names)
        }
    }

    /// Subscribes `client` to the events that end tasks, before the tasks are added.
    func follow(_ client: ControlClient) throws(Failure) {
        do throws(ClientError) {
            try client.subscribe(filter: EventFilter(types: TaskWaiter.eventTypes))
        } catch {
            throw Failure(error)
        }
    }

    private struct Shown: Encodable {
        var ids: [TaskID]
        var found: [TaskID]
        var updated: Int?
        var unchanged: Int?
        var tasks: [TaskStatus]?

        init(_ added: AddedTasks, isOfBatch: Bool, tasks: [TaskStatus]? = nil) {
            ids = added.ids
            found = added.found
            if isOfBatch {
                updated = added.applied?.updated
                unchanged = added.applied?.unchanged
            }
            self.tasks = tasks
        }
    }

    /// Prints the ids, reports which tasks existed before, waits for the tasks in `wait`, and prints the path of each
    /// downloaded file.
    ///
    /// - Parameters:
    ///   - batch: the batch to which the tasks were applied.
    ///   - cookies: the file of cookies, to which warnings of the daemon refer.
    ///   - rule: what happens if a file has the name, where an option says so.
    ///   - wait: the tasks to wait for; `nil` to wait for none.
    ///   - command: the command to run for each task that has ended.
    ///   - isFollowing: whether ``follow(_:)`` was called before the tasks were added.
    func conclude(
        _ added: AddedTasks, batch: String? = nil, cookies: String? = nil, rule: ConflictPolicy? = nil,
        isUpdate: Bool = false,
        wait: [TaskID]?, command: String? = nil, client: ControlClient, isFollowing: Bool = false
    ) throws {
        report(warnings: added.notes, cookies: cookies)
        output.lossNote = Self.lossNote(added.ids)
        if !json {
            for id in added.ids { output.line(id.description) }
            // Write the ids before the wait begins, so that the caller has them.
            output.flush()
            try reportFound(added, batch: batch, client)
        } else if wait == nil {
            output.json(Shown(added, isOfBatch: batch != nil))
        }
        guard let wait else { return try notePlaces(added, rule, isUpdate: isUpdate, client) }
        let barsNamePaths = showsBars && Terminal.isTerminal(STDOUT_FILENO)
        // With --json, standard output is one JSON value.
        let hooks = command.map {
            EndedTaskHooks(command: $0, output: json ? STDERR_FILENO : STDOUT_FILENO, deadline: deadline)
        }
        let onEnding = { (task: TaskStatus) in
            // Beside bars on the same terminal, the last line of the task has the path.
            if !json, !barsNamePaths, task.kind == .download, task.state == .completed, let path = task.path {
                output.line(Escape.visible(path))
                output.flush()
                if Describe.wasThere(task) { note("task \(task.id): the file was there, and nothing was fetched") }
            }
            hooks?.run(task)
        }
        let waiter = waiter(
            WaitTarget(ids: wait, batch: batch), client: client, isFollowing: isFollowing, onEnding: onEnding)
        do throws(Failure) {
            try waiter.run()
        } catch {
            _ = hooks?.finish()
            if json { printCutShort(added, isOfBatch: batch != nil, waiter) }
            throw error
        }
        let areDone = hooks?.finish() ?? true
        if json { output.json(Shown(added, isOfBatch: batch != nil, tasks: waiter.settled)) }
        try conclude(waiter)
        if !areDone { throw deadline.isOver ? ExitStatus.timedOut : .failed }
    }

    /// Prints the ids and what is known of the tasks after a wait that was cut short.
    private func printCutShort(_ added: AddedTasks, isOfBatch: Bool, _ waiter: TaskWaiter) {
        // The deadline of the waiting connection is over.
        let client = try? connect(waits: true)
        client?.answerTimeout = Self.lastAnswerTimeout
        output.json(Shown(added, isOfBatch: isOfBatch, tasks: waiter.known(client)))
        output.flush()
    }

    /// Tells on a terminal where the files of a few new downloads will be, and uploads go.
    private func notePlaces(
        _ added: AddedTasks, _ rule: ConflictPolicy?, isUpdate: Bool, _ client: ControlClient
    ) throws(ClientError) {
        guard !json, !isQuiet, Terminal.isTerminal(STDERR_FILENO), added.ids.count <= 3 else { return }
        for id in added.ids where !added.found.contains(id) {
            guard let task = try client.taskIfKnown(id), let path = task.kind == .upload ? task.url : task.path else {
                continue
            }
            // A short download may have ended meanwhile: the file is then its own.
            var isTaken = task.kind == .download && access(path, F_OK) == 0
            if isTaken { isTaken = try client.taskIfKnown(id)?.state != .completed }
            let conflict = isTaken ? ": " + Self.conflict(rule, isUpdate: isUpdate) : ""
            note((added.ids.count > 1 ? "\(id) " : "") + "goes to \(Escape.visible(path))" + conflict)
        }
    }

    /// Returns what happens to a download whose name is taken.
    static func conflict(_ rule: ConflictPolicy?, isUpdate: Bool) -> String {
        if isUpdate { return "the file there is replaced if the server has another version" }
        return switch rule {
        case nil:
            "that name is taken, so it gets a number, as in \"a (1).iso\", unless downloads.on-conflict says otherwise"
        case .rename: "that name is taken, so it gets a number, as in \"a (1).iso\""
        case .overwrite: "the file there is replaced once the new one is complete"
        case .skip: "the file is there, so nothing is fetched"
        case .fail: "that name is taken, so the task fails unless the file goes"
        }
    }

    /// The seconds that the daemon has for an answer after the time of `--timeout`.
    private static let lastAnswerTimeout = 5.0

    /// Returns the line that names tasks which were queued although the answer cannot be written.
    private static func lossNote(_ ids: [TaskID]) -> String? {
        guard !ids.isEmpty else { return nil }
        let shown = ids.prefix(20).map(\.description).joined(separator: " ")
        return "queued: \(shown)" + (ids.count > 20 ? " … (\(ids.count) tasks)" : "")
    }

    private func reportFound(_ added: AddedTasks, batch: String?, _ client: ControlClient) throws(ClientError) {
        guard added.countOfFound > 0 else { return }
        var states: [String: Int] = [:]
        if let batch {
            states = try client.queues().batches.first { $0.batch == batch }?.tasks ?? [:]
        }
        for id in added.found {
            guard let task = try client.taskIfKnown(id) else { continue }
            if let note = added.note(of: task) { return self.note(Escape.visible(note)) }
            states[task.state.rawValue, default: 0] += 1
        }
        note(Escape.visible(added.note(states: states)))
    }
}
