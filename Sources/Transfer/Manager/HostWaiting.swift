import Curl
import Synchronization

/// Keeps requests from hosts that are left alone, until those are free again; the driver of ``HostStandings``.
final class HostWaiting: Sendable {
    private struct State {
        var standings: HostStandings
        /// Those that sleep, by the host that they wait for.
        var sleepers: [String: [Int: Task<Void, Never>]] = [:]
        var last = 0
    }

    private let state: Mutex<State>
    private let clock: RetryClock

    init(policy: RetryPolicy, clock: RetryClock) {
        state = Mutex(State(standings: HostStandings(policy: policy)))
        self.clock = clock
    }

    /// Milliseconds until `host` may be asked again.
    func hold(of host: String) -> Int64 {
        let now = clock.now().milliseconds
        return state.withLock { $0.standings.hold(of: host, now: now) }
    }

    /// Waits until `host` may be asked. Costs no change of threads where that is now.
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
            // Within the lock, so that what becomes known of the host from here on wakes it.
            let sleep = Task { await clock.sleep(milliseconds) }
            state.sleepers[host, default: [:]][state.last] = sleep
            return (state.last, sleep)
        }
    }

    func note(_ outcome: HostStandings.Outcome, of host: String, retryAfter: Int64? = nil) {
        let now = clock.now().milliseconds
        let sleepers = state.withLock { state -> [Task<Void, Never>] in
            guard state.standings.note(outcome, of: host, retryAfter: retryAfter, now: now) else { return [] }
            return (state.sleepers[host] ?? [:]).values.map(\.self)
        }
        for sleeper in sleepers { sleeper.cancel() }
    }

    /// Requests that wait.
    var count: Int { state.withLock { $0.sleepers.values.reduce(0) { $0 + $1.count } } }
}

/// Whoever gave up before the host could be asked says nothing of the host, nor of the one who probes it.
struct NeverAdmitted: Error {}
