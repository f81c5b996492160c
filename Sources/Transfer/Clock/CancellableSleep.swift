@preconcurrency import Dispatch
import Synchronization

/// A sleep that leaves nothing behind once it is cancelled.
///
/// `Task.sleep` keeps its job, some hundred bytes and a timer, until the time that it was to end at, cancelled or not:
/// whoever puts off a sleep of a day once a second would have a day's worth of them.
package final class CancellableSleep: Sendable {
    private enum State {
        case ready
        case asleep(CheckedContinuation<Void, Never>, any DispatchSourceTimer)
        case over
    }

    private static let queue = DispatchQueue(label: "dld-sleep")

    private let state = Mutex(State.ready)

    /// Returns after so many milliseconds, or when the Swift task is cancelled.
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
