import Dispatch
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

/// A single-threaded executor that a task may prefer.
private final class OneThread: TaskExecutor {
    private let queue = DispatchQueue(label: "one-thread")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Occupies the thread after its current job: signals `isOccupied`, then waits for `gate`.
    func occupy(_ isOccupied: DispatchSemaphore, until gate: DispatchSemaphore) {
        queue.async {
            isOccupied.signal()
            gate.wait()
        }
    }
}

@Suite("Threads that requests share")
struct SharedThreadsTests {
    enum Request: CaseIterable {
        case list, count, status, states, rates, storage, pause, change, changeMatching, remove, update

        func ask(_ queue: TaskQueue, _ id: TaskID) async throws {
            let me = QueueFixture.me
            switch self {
            case .list: _ = try await queue.page(TaskFilter(), after: nil, limit: 10, newest: nil, for: me)
            case .count: _ = try await queue.owners(of: TaskFilter(), for: me)
            case .status: _ = try await queue.status(of: id, for: me)
            case .states: _ = try await queue.counts(for: me)
            case .rates: _ = await queue.rates()
            case .storage: _ = try await queue.storageUse(for: me)
            case .pause: _ = await queue.schedulePause()
            case .change: _ = try await queue.apply(.cancel, to: [id], by: me)
            case .changeMatching: _ = try await queue.apply(.cancel, toTasksMatching: TaskFilter(), by: me)
            case .remove: _ = try await queue.remove([id], deletesFiles: false, by: me)
            case .update:
                var changes = TaskChanges()
                changes.output = .set("other")
                _ = try await queue.update([id], by: changes, for: me)
            }
        }
    }

    @Test("requests wait for no thread that another request prefers", arguments: Request.allCases)
    func preferredThread(_ request: Request) async throws {
        let fixture = try await QueueFixture()
        let queue = fixture.queue
        let id = try await fixture.add("https://localhost:1/a") { $0.paused = true }
        let (one, isOccupied, gate) = (OneThread(), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let preferring = Task(executorPreference: one) {
            // The thread is occupied as soon as the request suspends.
            one.occupy(isOccupied, until: gate)
            try await request.ask(queue, id)
        }
        await Self.wait(for: isOccupied)

        let answered = DispatchSemaphore(value: 0)
        let other = Task {
            _ = await queue.rates()
            answered.signal()
        }
        #expect(await Self.wait(for: answered) == .success)

        gate.signal()
        try await preferring.value
        await other.value
        await queue.stop()
    }

    /// - Returns: whether the semaphore was signalled within ten seconds.
    @discardableResult
    private static func wait(for semaphore: DispatchSemaphore) async -> DispatchTimeoutResult {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "waiting").async {
                continuation.resume(returning: semaphore.wait(timeout: .now() + 10))
            }
        }
    }
}
