import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// What became of the tasks of a call that adds some.
struct AddedTasks: Equatable {
    /// Those that the call prints: the new ones, and those that it found under their keys.
    var ids: [TaskID]
    /// The ``ids`` that were there before.
    var found: [TaskID] = []
    /// Of a batch that was there before: how many entries changed their task, and how many had nothing to change.
    var applied: (updated: Int, unchanged: Int)?

    init(_ result: TaskAddResult) {
        ids = result.ids
        found = result.found
    }

    init(_ result: QueueCommitResult) {
        ids = QueueSubmission.ids(of: result)
        applied = (result.updated, result.unchanged)
    }

    static func == (one: AddedTasks, other: AddedTasks) -> Bool {
        one.ids == other.ids && one.found == other.found && one.applied?.updated == other.applied?.updated
            && one.applied?.unchanged == other.applied?.unchanged
    }

    // MARK: - What was there already

    /// What a call says of the one task that it found under its key; `nil` where it found none or several.
    func note(of task: TaskStatus) -> String? {
        guard found == [task.id], let key = task.key else { return nil }
        let rest = ids.count == 1 ? "nothing was added" : "it was not added again"
        return "task \(task.id) has the key \(key) already (\(task.state.rawValue)); \(rest)"
    }

    /// How many tasks were there already.
    var countOfFound: Int { applied.map { $0.updated + $0.unchanged } ?? found.count }

    /// What a call says of several tasks that it found.
    ///
    /// - Parameter states: the tasks by state, where they are known.
    func note(states: [String: Int]) -> String {
        let count = countOfFound
        let isWhole = states.values.reduce(0, +) == count
        var text = ids.count == found.count ? "nothing to add: " : ""
        text += "\(Describe.count(count, "task")) \(count == 1 ? "is" : "are") there already"
        if isWhole { text += " (\(Describe.counts(states)))" }
        if let applied, applied.updated > 0 { text += ", of which \(applied.updated) changed" }
        return text
    }
}

// What `add` and `upload` have in common once their tasks are known.
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

    /// Listens on `client` for the ends of tasks that it has yet to add.
    func follow(_ client: ControlClient) throws(Failure) {
        do throws(ClientError) {
            try client.subscribe(types: TaskWaiter.eventTypes)
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

    /// Prints the ids, says what was there already and, where asked to, waits.
    ///
    /// - Parameters:
    ///   - batch: the batch that the tasks were applied to.
    ///   - wait: the tasks to wait for; `nil` for none.
    ///   - isFollowing: ``follow(_:)`` came before all of them.
    func conclude(
        _ added: AddedTasks, batch: String? = nil, wait: [TaskID]?, client: ControlClient, isFollowing: Bool = false
    ) throws {
        if !json {
            for id in added.ids { output.line(id.description) }
            // The ids are the caller's before the waiting begins.
            output.flush()
            try tellFound(added, batch: batch, client)
        } else if wait == nil {
            output.json(Shown(added, isOfBatch: batch != nil))
        }
        guard let wait else { return }
        let waiter = waiter(wait, client: client, isFollowing: isFollowing)
        try waiter.run()
        if json { output.json(Shown(added, isOfBatch: batch != nil, tasks: waiter.settled)) }
        guard waiter.conclude() else { throw ExitStatus.failed }
    }

    private func tellFound(_ added: AddedTasks, batch: String?, _ client: ControlClient) throws(ClientError) {
        guard added.countOfFound > 0 else { return }
        var states: [String: Int] = [:]
        if let batch {
            states = try client.queues().batches.first { $0.batch == batch }?.tasks ?? [:]
        }
        for id in added.found {
            guard let task = try client.taskIfKnown(id) else { continue }
            if let note = added.note(of: task) { return tell(note) }
            states[task.state.rawValue, default: 0] += 1
        }
        tell(added.note(states: states))
    }

    /// Says something on standard error that is no failure.
    private func tell(_ note: String) {
        let errors = Output(STDERR_FILENO)
        errors.line(Escape.visible(note))
        errors.flush()
    }
}
