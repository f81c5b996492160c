import Dispatch
import Synchronization
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

/// One thread that a task may prefer.
private final class OneThread: TaskExecutor {
    private let queue = DispatchQueue(label: "one-thread")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Occupies the thread until `gate` is signalled; returns once what was asked of the thread before is done.
    func occupy(until gate: DispatchSemaphore) async {
        await withCheckedContinuation { continuation in
            queue.async {
                continuation.resume()
                gate.wait()
            }
        }
    }
}

@Suite("Threads that requests share")
struct SharedThreadsTests {
    /// A clock of which one reading waits.
    private final class HeldClock: Sendable {
        let isArmed = Atomic(false)
        let reached = DispatchSemaphore(value: 0)
        let gate = DispatchSemaphore(value: 0)

        var clock: QueueClock {
            var clock = QueueClock.system
            let monotonic = clock.monotonic
            clock.monotonic = {
                if self.isArmed.exchange(false, ordering: .relaxed) {
                    self.reached.signal()
                    self.gate.wait()
                }
                return monotonic()
            }
            return clock
        }
    }

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
            case .change: _ = try await queue.change(.cancel, [id], by: me)
            case .changeMatching: _ = try await queue.change(.cancel, matching: TaskFilter(), by: me)
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
        let held = HeldClock()
        let fixture = try await QueueFixture(clock: held.clock)
        let queue = fixture.queue
        let id = try await fixture.add("https://localhost:1/a") { $0.paused = true }
        let one = OneThread()
        let occupied = DispatchSemaphore(value: 0)

        // While the scheduler is busy, a request with a preferred thread comes to wait for it.
        held.isArmed.store(true, ordering: .relaxed)
        let busy = Task { await queue.rates() }
        await Self.wait(for: held.reached)
        let preferring = Task(executorPreference: one) { try await request.ask(queue, id) }
        await one.occupy(until: occupied)
        held.gate.signal()
        let answered = DispatchSemaphore(value: 0)
        let other = Task {
            _ = await queue.rates()
            answered.signal()
        }
        #expect(await Self.wait(for: answered) == .success)

        occupied.signal()
        try await preferring.value
        _ = await (busy.value, other.value)
        await queue.stop()
    }

    /// - Returns: whether it was signalled within ten seconds.
    @discardableResult
    private static func wait(for semaphore: DispatchSemaphore) async -> DispatchTimeoutResult {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "waiting").async {
                continuation.resume(returning: semaphore.wait(timeout: .now() + 10))
            }
        }
    }
}
