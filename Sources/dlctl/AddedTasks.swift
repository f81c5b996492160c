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

    /// Listens on `client` for the ends of tasks that it has yet to add.
    func follow(_ client: ControlClient) throws(Failure) {
        do throws(ClientError) {
            try client.subscribe(types: TaskWaiter.eventTypes)
        } catch {
            throw Failure(error)
        }
    }

    private struct Added: Encodable {
        var ids: [TaskID]
        var tasks: [TaskStatus]?
    }

    /// Prints the ids and, where asked to, waits.
    ///
    /// - Parameters:
    ///   - wait: the tasks to wait for; `nil` for none.
    ///   - isFollowing: ``follow(_:)`` came before all of them.
    func conclude(
        _ ids: [TaskID], wait: [TaskID]?, client: ControlClient, isFollowing: Bool = false
    ) throws {
        if !json {
            for id in ids { output.line(id.description) }
            // The ids are the caller's before the waiting begins.
            output.flush()
        } else if wait == nil {
            output.json(Added(ids: ids))
        }
        guard let wait else { return }
        let waiter = waiter(wait, client: client, isFollowing: isFollowing)
        try waiter.run()
        if json { output.json(Added(ids: ids, tasks: waiter.settled)) }
        guard waiter.conclude() else { throw ExitStatus.failed }
    }
}
