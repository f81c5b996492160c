import Synchronization
import TaskModel

/// A source of tasks' statuses over time, for all parts of an app that wait, over one connection.
///
/// The connection exists while someone waits. Each waiter gets the present status first, then each change.
final class TaskWatch: Sendable {
    private typealias Continuation = AsyncThrowingStream<TaskStatus, any Error>.Continuation

    /// A task for which someone waits.
    private struct Watched {
        var waiters: [Int: Continuation] = [:]
        /// The last status that the waiters got.
        var status: TaskStatus?
        /// The number of the last call that returned a status.
        var call = 0
        /// The number of events that were applied to the status.
        var advances = 0
    }

    private struct State {
        var tasks: [TaskID: Watched] = [:]
        var lastWaiter = 0
        var lastCall = 0
        /// The reading of events; `nil` while no one waits.
        var reading: (number: Int, task: Task<Void, Never>)?
        var lastReading = 0
    }

    private let state = Mutex(State())
    private let filter: EventFilter

    /// - Parameter withProgress: whether the growing number of bytes is a change.
    init(withProgress: Bool) {
        var types = Set(TaskEvent.Kind.allCases).subtracting([.gap, .batchFinished])
        if !withProgress { types.remove(.progress) }
        filter = EventFilter(types: types)
    }

    /// Returns the statuses of a task. The sequence ends once the task is settled or removed.
    func statuses(of id: TaskID, _ client: DLDClient) -> AsyncThrowingStream<TaskStatus, any Error> {
        // Only the newest status counts: a slow reader may miss others.
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = nextWaiter()
            continuation.onTermination = { [weak self] _ in self?.remove(number, of: id) }
            add(continuation, number, for: id, client)
            Task { await self.read(id, client) }
        }
    }

    // MARK: Waiters

    deinit {
        for waiter in state.withLock({ $0.tasks.values.flatMap(\.waiters.values) }) { waiter.finish() }
    }

    private func nextWaiter() -> Int {
        state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
    }

    private func add(_ continuation: Continuation, _ number: Int, for id: TaskID, _ client: DLDClient) {
        state.withLock { state in
            state.tasks[id, default: Watched()].waiters[number] = continuation
            if state.reading == nil {
                state.lastReading += 1
                let number = state.lastReading
                let task = Task { [weak self, weak client] in
                    do {
                        try await Self.follow({ self }, { client })
                    } catch {
                        self?.fail(error, reading: number)
                    }
                }
                state.reading = (number, task)
            }
        }
    }

    private func remove(_ number: Int, of id: TaskID) {
        let ended = state.withLock { state -> Task<Void, Never>? in
            state.tasks[id]?.waiters[number] = nil
            if state.tasks[id]?.waiters.isEmpty == true { state.tasks[id] = nil }
            guard state.tasks.isEmpty else { return nil }
            defer { state.reading = nil }
            return state.reading?.task
        }
        ended?.cancel()
    }

    private func fail(_ error: any Error, reading number: Int) {
        let waiters = state.withLock { state -> [Continuation] in
            guard state.reading?.number == number else { return [] }
            state.reading = nil
            return state.tasks.values.flatMap(\.waiters.values)
        }
        for waiter in waiters { waiter.finish(throwing: error) }
    }

    // MARK: Events

    /// Passes each change to those who wait for its task.
    private static func follow(_ watch: () -> TaskWatch?, _ client: () -> DLDClient?) async throws {
        guard let filter = watch()?.filter, let events = try await client()?.eventsFromNow(filter: filter) else {
            return
        }
        // Changes before this place are in the statuses that are read now.
        if let watch = watch(), let client = client() {
            for id in watch.ids { await watch.read(id, client) }
        }
        for try await event in events {
            guard let watch = watch(), let client = client() else { return }
            await watch.handle(event.event, client)
        }
    }

    private var ids: [TaskID] { state.withLock { Array($0.tasks.keys) } }

    private func handle(_ event: TaskEvent, _ client: DLDClient) async {
        if event.type == .gap {
            for id in ids { await read(id, client) }
        } else if let id = event.id, state.withLock({ $0.tasks[id] != nil }) {
            if event.type != .progress || !advance(id, event) { await read(id, client) }
        }
    }

    /// Applies an event of type `progress` to the last status.
    ///
    /// - Returns: `false` if the status must be read instead.
    private func advance(_ id: TaskID, _ event: TaskEvent) -> Bool {
        state.withLock { state in
            guard state.tasks[id]?.status?.advance(by: event) == true, let watched = state.tasks[id],
                let status = watched.status
            else { return false }
            state.tasks[id]?.advances += 1
            for waiter in watched.waiters.values { waiter.yield(status) }
            return true
        }
    }

    // MARK: Statuses

    /// Reads a task's status, and passes it to those who wait for it. An absent daemon is waited for.
    private func read(_ id: TaskID, _ client: DLDClient) async {
        while let advances = state.withLock({ $0.tasks[id]?.advances }) {
            do throws(ClientError) {
                // Calls run one at a time, so a higher number means a later status.
                let (number, status) = try await client.calls.run { connection throws(ClientError) in
                    (self.nextCall(), try connection.taskIfKnown(id))
                }
                if deliver(status, of: id, call: number, advances) { return }
            } catch {
                if CallQueue.isLoss(error) || error == .timedOut { continue }
                for waiter in waiters(of: id) { waiter.finish(throwing: error) }
                return
            }
        }
    }

    private func nextCall() -> Int {
        state.withLock { state in
            state.lastCall += 1
            return state.lastCall
        }
    }

    /// Passes a status to those who wait for the task.
    ///
    /// - Parameter advances: the number of events that had been applied before the call.
    /// - Returns: `false` if an event that came meanwhile knows of more bytes. The status is older than it then, or the
    ///   task began anew; another call tells.
    private func deliver(_ status: TaskStatus?, of id: TaskID, call: Int, _ advances: Int) -> Bool {
        let (isNew, ended) = state.withLock { state -> (Bool, [Continuation]) in
            guard let watched = state.tasks[id], call > watched.call else { return (true, []) }
            if let status, let known = watched.status, watched.advances != advances, status.state == known.state,
                status.bytesDone < known.bytesDone
            {
                return (false, [])
            }
            state.tasks[id]?.call = call
            state.tasks[id]?.status = status
            let waiters = Array(watched.waiters.values)
            if let status { for waiter in waiters { waiter.yield(status) } }
            return (true, status?.isSettled ?? true ? waiters : [])
        }
        for waiter in ended { waiter.finish() }
        return isNew
    }

    private func waiters(of id: TaskID) -> [Continuation] {
        state.withLock { $0.tasks[id].map { Array($0.waiters.values) } ?? [] }
    }
}
