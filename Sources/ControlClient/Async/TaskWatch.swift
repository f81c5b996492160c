import Glibc
import Synchronization
import TaskModel

/// The statuses of tasks over time, for all waiting parts of an app over one connection.
///
/// The connection exists while someone waits. Each waiter is told the present status first, then each change.
final class TaskWatch: Sendable {
    private typealias Continuation = AsyncThrowingStream<TaskStatus, any Error>.Continuation

    private struct State {
        var waiters: [TaskID: [Int: Continuation]] = [:]
        var lastNumber = 0
        /// The reading of events; `nil` while no one waits.
        var reading: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// Returns the statuses of a task. The sequence ends once the task is settled or removed.
    func statuses(of id: TaskID, _ client: DLDClient) -> AsyncThrowingStream<TaskStatus, any Error> {
        // Only the newest status counts: a slow reader may pass over others.
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = add(continuation, for: id, client)
            continuation.onTermination = { [weak self] _ in self?.remove(number, of: id) }
            Task { await self.read(id, client) }
        }
    }

    private func add(_ continuation: Continuation, for id: TaskID, _ client: DLDClient) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.waiters[id, default: [:]][state.lastNumber] = continuation
            if state.reading == nil {
                state.reading = Task { [weak self, weak client] in
                    do {
                        try await Self.follow({ self }, { client })
                    } catch {
                        self?.fail(error)
                    }
                }
            }
            return state.lastNumber
        }
    }

    private func remove(_ number: Int, of id: TaskID) {
        let ended = state.withLock { state -> Task<Void, Never>? in
            state.waiters[id]?[number] = nil
            if state.waiters[id]?.isEmpty == true { state.waiters[id] = nil }
            guard state.waiters.isEmpty else { return nil }
            defer { state.reading = nil }
            return state.reading
        }
        ended?.cancel()
    }

    private static let filter = EventFilter(
        types: Set(TaskEvent.Kind.allCases).subtracting([.gap, .batchFinished]), owner: geteuid())

    /// Hands each change to those who wait for its task.
    private static func follow(_ watch: () -> TaskWatch?, _ client: () -> DLDClient?) async throws {
        guard let events = try await client()?.eventsFromNow(filter) else { return }
        // Changes before this place are in the statuses that are read now.
        if let watch = watch(), let client = client() {
            for id in watch.ids { await watch.read(id, client) }
        }
        for try await event in events {
            guard let watch = watch(), let client = client() else { return }
            await watch.tell(event.event, client)
        }
    }

    private var ids: [TaskID] { state.withLock { Array($0.waiters.keys) } }

    private func tell(_ event: TaskEvent, _ client: DLDClient) async {
        if event.type == .gap {
            for id in ids { await read(id, client) }
        } else if let id = event.id, state.withLock({ $0.waiters[id] != nil }) {
            await read(id, client)
        }
    }

    /// Reads a task's status, and hands it to those who wait for it.
    private func read(_ id: TaskID, _ client: DLDClient) async {
        do throws(ClientError) {
            let status = try await client.status(of: id)
            for waiter in waiters(of: id) {
                if let status { waiter.yield(status) }
                if status?.isSettled ?? true { waiter.finish() }
            }
        } catch {
            for waiter in waiters(of: id) { waiter.finish(throwing: error) }
        }
    }

    private func waiters(of id: TaskID) -> [Continuation] {
        state.withLock { $0.waiters[id].map { Array($0.values) } ?? [] }
    }

    private func fail(_ error: any Error) {
        let waiters = state.withLock { state in
            state.reading = nil
            return state.waiters.values.flatMap(\.values)
        }
        for waiter in waiters { waiter.finish(throwing: error) }
    }
}
