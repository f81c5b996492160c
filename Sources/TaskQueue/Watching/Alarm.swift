import Synchronization
import TaskModel

/// Rings once, at the earliest of the times that were asked for.
final class Alarm: Sendable {
    private struct State {
        /// Of a clock that no one sets.
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

    /// Asks for a ring in so many milliseconds.
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

    /// Whether it rang since the last call.
    func hasRung() -> Bool {
        state.withLock { state in
            defer { state.hasRung = false }
            return state.hasRung
        }
    }

    func cancel() { state.withLock { $0.task?.cancel() } }
}
