import Synchronization
import TaskModel

/// A timer that fires once, at the earliest of the requested times.
final class Alarm: Sendable {
    private struct State {
        /// The monotonic time at which the timer fires.
        var firesAt: Milliseconds?
        var hasFired = false
        var task: Task<Void, Never>?
    }

    private let clock: QueueClock
    private let fire: @Sendable () -> Void
    private let state = Mutex(State())

    init(_ clock: QueueClock, fire: @escaping @Sendable () -> Void) {
        self.clock = clock
        self.fire = fire
    }

    /// Requests that the timer fire after a number of milliseconds.
    func set(_ wait: Milliseconds) {
        let time = clock.monotonic() + wait
        state.withLock { state in
            if let known = state.firesAt, known <= time { return }
            state.task?.cancel()
            state.firesAt = time
            state.task = Task { [weak self, clock] in
                await clock.sleep(wait)
                if !Task.isCancelled { self?.goOff() }
            }
        }
    }

    private func goOff() {
        state.withLock { state in
            state.firesAt = nil
            state.hasFired = true
        }
        fire()
    }

    /// Returns whether the timer has fired since the last call.
    func hasFired() -> Bool {
        state.withLock { state in
            defer { state.hasFired = false }
            return state.hasFired
        }
    }

    func cancel() { state.withLock { $0.task?.cancel() } }
}
