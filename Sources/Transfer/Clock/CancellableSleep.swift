@preconcurrency import Dispatch
import Synchronization

/// A sleep that releases its resources when it is cancelled.
///
/// `Task.sleep` keeps its job, about a hundred bytes and a timer, until its deadline even if it is cancelled. A caller
/// that cancelled and restarted a sleep of a day once a second would accumulate a day's worth of them.
package final class CancellableSleep: Sendable {
    private enum State {
        case ready
        case asleep(CheckedContinuation<Void, Never>, any DispatchSourceTimer)
        case over
    }

    private static let queue = DispatchQueue(label: "dld-sleep")

    private let state = Mutex(State.ready)

    /// Returns after the given number of milliseconds, or when the Swift task is cancelled.
    package static func sleep(_ milliseconds: Int64) async {
        let sleep = CancellableSleep()
        await withTaskCancellationHandler {
            await withCheckedContinuation { sleep.begin(max(0, milliseconds), $0) }
        } onCancel: {
            sleep.end()
        }
    }

    private func begin(_ milliseconds: Int64, _ continuation: CheckedContinuation<Void, Never>) {
        let isOver = state.withLock { state in
            guard case .ready = state else { return true }
            let timer = DispatchSource.makeTimerSource(queue: Self.queue)
            timer.schedule(deadline: .now() + .milliseconds(Int(clamping: milliseconds)), leeway: .milliseconds(1))
            timer.setEventHandler { [weak self] in self?.end() }
            state = .asleep(continuation, timer)
            timer.resume()
            return false
        }
        if isOver { continuation.resume() }
    }

    private func end() {
        let continuation: CheckedContinuation<Void, Never>? = state.withLock { state in
            defer { state = .over }
            guard case .asleep(let continuation, let timer) = state else { return nil }
            timer.cancel()
            return continuation
        }
        continuation?.resume()
    }
}
