import Curl
import Synchronization

/// A limit on the number of requests that are sent to a host per second, over all sessions that share the pacer. A host
/// is scheme, name and port.
///
/// Every request counts: retries, redirects, the requests of further connections, and a session with a file server. The
/// requests are spaced evenly.
public final class RequestPacer: Sendable {
    private struct Host {
        var pace: RequestPace
        /// Wake the waiting requests, by their numbers.
        var wakes: [Int: @Sendable () -> Void] = [:]
    }

    private struct State {
        var rates: HostTable<Double>
        var hosts: [String: Host] = [:]
        /// The number of hosts at which unused ones are removed.
        var sweepAt = 64
        var lastNumber = 0
    }

    private let state: Mutex<State>
    /// Whether there has ever been a limit. Without one, a request costs no look-up.
    private let isUsed: Atomic<Bool>

    /// Creates a pacer.
    ///
    /// - Parameter rates: the requests per second by host.
    public init(_ rates: HostTable<Double> = HostTable()) {
        state = Mutex(State(rates: rates))
        isUsed = Atomic(!rates.isEmpty)
    }

    /// The requests per second by host. A change applies to waiting requests too.
    public var rates: HostTable<Double> {
        get { state.withLock { $0.rates } }
        set {
            let wakes = state.withLock { state -> [@Sendable () -> Void] in
                guard state.rates != newValue else { return [] }
                state.rates = newValue
                for origin in state.hosts.keys {
                    state.hosts[origin]?.pace.setRate(newValue.value(forOrigin: origin))
                }
                return state.hosts.values.compactMap { host in host.pace.head.flatMap { host.wakes[$0] } }
            }
            if !newValue.isEmpty { isUsed.store(true, ordering: .relaxed) }
            for wake in wakes { wake() }
        }
    }

    /// A waiting request. It leaves the order when it is released.
    final class Ticket: Sendable {
        private let pacer: RequestPacer
        fileprivate let origin: String
        fileprivate let number: Int

        fileprivate init(_ pacer: RequestPacer, origin: String, number: Int) {
            self.pacer = pacer
            self.origin = origin
            self.number = number
        }

        deinit { pacer.leave(origin: origin, number: number) }

        /// Returns the next step of the request.
        func look(now: MonotonicTime) -> RequestPace.Step { pacer.look(self, now: now) }
    }

    /// Adds a request.
    ///
    /// - Parameters:
    ///   - origin: `scheme://name:port`.
    ///   - isFurther: see ``RequestPace/enter(_:isFurther:now:)``.
    ///   - wake: called on any thread when the request is to be looked at again.
    /// - Returns: `nil` if the request may be sent now.
    func enter(
        _ origin: String, isFurther: Bool, now: MonotonicTime, wake: @escaping @Sendable () -> Void
    ) -> (ticket: Ticket, step: RequestPace.Step)? {
        guard mayLimit else { return nil }
        return state.withLock { state in
            if state.hosts[origin] == nil {
                guard let rate = state.rates.value(forOrigin: origin) else { return nil }
                Self.sweep(&state, now: now)
                state.hosts[origin] = Host(pace: RequestPace(rate: rate))
            }
            state.lastNumber &+= 1
            let number = state.lastNumber
            guard let step = state.hosts[origin]?.pace.enter(number, isFurther: isFurther, now: now), step != .send
            else { return nil }
            state.hosts[origin]?.wakes[number] = wake
            return (Ticket(self, origin: origin, number: number), step)
        }
    }

    /// Whether any host may have a limit.
    var mayLimit: Bool { isUsed.load(ordering: .relaxed) }

    /// Whether a request would be sent at once.
    func isFree(_ origin: String, now: MonotonicTime) -> Bool {
        guard mayLimit else { return true }
        return state.withLock { $0.hosts[origin]?.pace.isFree(now: now) ?? true }
    }

    private func look(_ ticket: Ticket, now: MonotonicTime) -> RequestPace.Step {
        let (step, wake) = state.withLock { state -> (RequestPace.Step, (@Sendable () -> Void)?) in
            // A host with a waiting request is never removed.
            guard let step = state.hosts[ticket.origin]?.pace.look(ticket.number, now: now) else { return (.send, nil) }
            guard step == .send else { return (step, nil) }
            state.hosts[ticket.origin]?.wakes[ticket.number] = nil
            return (step, Self.nextWake(state.hosts[ticket.origin]))
        }
        wake?()
        return step
    }

    private func leave(origin: String, number: Int) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            state.hosts[origin]?.wakes[number] = nil
            guard state.hosts[origin]?.pace.leave(number) == true else { return nil }
            return Self.nextWake(state.hosts[origin])
        }
        wake?()
    }

    /// Returns the closure that makes the next waiting request set its timer.
    private static func nextWake(_ host: Host?) -> (@Sendable () -> Void)? {
        host?.pace.head.flatMap { host?.wakes[$0] }
    }

    /// Removes hosts whose next request could be sent at once, from time to time.
    private static func sweep(_ state: inout State, now: MonotonicTime) {
        guard state.hosts.count >= state.sweepAt else { return }
        state.hosts = state.hosts.filter { !$0.value.pace.isFree(now: now) }
        state.sweepAt = max(64, state.hosts.count * 2)
    }
}
