import Synchronization
import TaskModel

@testable import TaskQueue

/// A clock that advances only on request.
final class ManualClock: Sendable {
    private struct Sleeper {
        var wakesAt: Milliseconds
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now: Milliseconds = 1_700_000_000_000
        var lastNumber = 0
        var sleepers: [Int: Sleeper] = [:]
        /// Sleepers that were cancelled before they slept.
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    var now: Milliseconds { state.withLock { $0.now } }

    var clock: QueueClock {
        QueueClock(now: { self.now }, monotonic: { self.now }, sleep: { await self.sleep($0) })
    }

    /// Advances the clock and wakes every sleeper that is due.
    func advance(by milliseconds: Milliseconds) {
        let woken = state.withLock { state in
            state.now += milliseconds
            let due = state.sleepers.filter { $0.value.wakesAt <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    private func sleep(_ milliseconds: Milliseconds) async {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.cancelled.remove(number) != nil || milliseconds <= 0 { return true }
                    state.sleepers[number] = Sleeper(
                        wakesAt: state.now + milliseconds, continuation: continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let sleeper = state.sleepers.removeValue(forKey: number)
                if sleeper == nil { state.cancelled.insert(number) }
                return sleeper
            }
            sleeper?.continuation.resume()
        }
    }
}

/// A settable offset between two clocks.
final class ManualOffset: Sendable {
    private let milliseconds = Mutex<Milliseconds>(0)

    var value: Milliseconds {
        get { milliseconds.withLock { $0 } }
        set { milliseconds.withLock { $0 = newValue } }
    }
}
