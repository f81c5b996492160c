import Curl
import Synchronization

/// A gate that makes requests wait for hosts that are closed; the driver of ``HostCircuitBreakers``.
final class HostWaiting: Sendable {
    private struct State {
        var standings: HostCircuitBreakers
        /// The sleeping requests, by host and number.
        var sleepers: [String: [Int: Task<Void, Never>]] = [:]
        var last = 0
    }

    private let state: Mutex<State>
    private let clock: RetryClock

    init(policy: RetryPolicy, clock: RetryClock) {
        state = Mutex(State(standings: HostCircuitBreakers(policy: policy)))
        self.clock = clock
    }

    /// Returns the time until `host` may be contacted again, in milliseconds.
    func hold(of host: String) -> Int64 {
        let now = clock.now().milliseconds
        return state.withLock { $0.standings.hold(of: host, now: now) }
    }

    /// Waits until `host` may be contacted. Does not switch threads if that is the case now.
    ///
    /// - Throws: ``TransferError/cancelled``.
    nonisolated(nonsending) func enter(_ host: String) async throws(TransferError) {
        while let (number, sleep) = sleepIfHeld(host) {
            await withTaskCancellationHandler {
                await sleep.value
            } onCancel: {
                sleep.cancel()
            }
            state.withLock { state in
                state.sleepers[host]?[number] = nil
                if state.sleepers[host]?.isEmpty == true { state.sleepers[host] = nil }
            }
            guard !Task.isCancelled else {
                throw TransferError(.cancelled, TransferError.cancelled.message, underlying: NeverAdmitted())
            }
        }
    }

    private func sleepIfHeld(_ host: String) -> (Int, Task<Void, Never>)? {
        let (now, clock) = (clock.now().milliseconds, clock)
        return state.withLock { state in
            guard case .wait(let milliseconds) = state.standings.admit(to: host, now: now) else { return nil }
            state.last += 1
            // Within the lock, so that any later change of the host's state wakes this sleep.
            let sleep = Task { await clock.sleep(milliseconds) }
            state.sleepers[host, default: [:]][state.last] = sleep
            return (state.last, sleep)
        }
    }

    func record(_ outcome: HostCircuitBreakers.Outcome, of host: String, retryAfter: Int64? = nil) {
        let now = clock.now().milliseconds
        let sleepers = state.withLock { state -> [Task<Void, Never>] in
            guard state.standings.record(outcome, of: host, retryAfter: retryAfter, now: now) else { return [] }
            return (state.sleepers[host] ?? [:]).values.map(\.self)
        }
        for sleeper in sleepers { sleeper.cancel() }
    }

    /// The number of waiting requests.
    var count: Int { state.withLock { $0.sleepers.values.reduce(0) { $0 + $1.count } } }
}

/// The underlying error of a request that was cancelled while it waited for its host. It says nothing about the host or
/// about a probe under way.
struct NeverAdmitted: Error {}
