import ControlClient
import TaskModel

// What `add` and `upload` have in common once their tasks are known.
extension Context {
    func add(
        _ tasks: [TaskSpecification], names: FieldNames, client: ControlClient
    ) throws(Failure) -> [TaskID] {
        do {
            return try client.add(tasks)
        } catch {
            throw Failure(error, names: names)
        }
    }

    private struct Added: Encodable {
        var ids: [TaskID]
        var tasks: [TaskStatus]?
    }

    /// Prints the ids and, where asked to, waits.
    ///
    /// - Parameter wait: the tasks to wait for; `nil` for none.
    func conclude(_ ids: [TaskID], wait: [TaskID]?, client: ControlClient) throws {
        if !json {
            for id in ids { output.line(id.description) }
            // The ids are the caller's before the waiting begins.
            output.flush()
        } else if wait == nil {
            output.json(Added(ids: ids))
        }
        guard let wait else { return }
        let waiter = waiter(wait, client: client)
        try waiter.run()
        if json { output.json(Added(ids: ids, tasks: waiter.settled)) }
        guard waiter.conclude() else { throw ExitStatus.failed }
    }
}
