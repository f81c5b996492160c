import Synchronization
import TaskModel

/// A timer that fires once, at the earliest of the requested times.
final class Alarm: Sendable {
    private struct State {
        /// The monotonic time at which the timer fires.
        var ringsAt: Milliseconds?
        var hasRung = false
        var task: Task<Void, Never>?
    }

    private let clock: QueueClock
    private let ring: @Sendable () -> Void
    private let state = Mutex(State())

    init(_ clock: QueueClock, ring: @escaping @Sendable () -> Void) {
        self.clock = clock
        self.ring = ring
    }

    /// Requests that the timer fire after a number of milliseconds.
    func set(_ wait: Milliseconds) {
        let time = clock.monotonic() + wait
        state.withLock { state in
            if let known = state.ringsAt, known <= time { return }
            state.task?.cancel()
            state.ringsAt = time
            state.task = Task { [weak self, clock] in
                await clock.sleep(wait)
                if !Task.isCancelled { self?.goOff() }
            }
        }
    }

    private func goOff() {
        state.withLock { state in
            state.ringsAt = nil
            state.hasRung = true
        }
        ring()
    }

    /// Returns whether the timer has fired since the last call.
    func hasRung() -> Bool {
        state.withLock { state in
            defer { state.hasRung = false }
            return state.hasRung
        }
    }

    func cancel() { state.withLock { $0.task?.cancel() } }
}
