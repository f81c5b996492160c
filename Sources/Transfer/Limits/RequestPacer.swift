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
        /// Wake the waiting requests, by their numbers. They return `false` for a request whose loop has ended.
        var wakes: [Int: @Sendable () -> Bool] = [:]

        /// The requests that need a timer.
        private var awaited: (head: Int?, rival: Int?) { (pace.head, pace.rival) }

        /// Performs a change.
        ///
        /// - Returns: the requests that need another timer by it.
        mutating func change(_ body: (inout Host) -> Void) -> [Int] {
            let before = awaited
            body(&self)
            let after = awaited
            return [after.head == before.head ? nil : after.head, after.rival == before.rival ? nil : after.rival]
                .compactMap { $0 }
        }
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
            let awaited = state.withLock { state -> [String: [Int]] in
                guard state.rates != newValue else { return [:] }
                state.rates = newValue
                for origin in state.hosts.keys {
                    state.hosts[origin]?.pace.setRate(newValue.value(forOrigin: origin))
                }
                return state.hosts.mapValues { [$0.pace.head, $0.pace.rival].compactMap { $0 } }
            }
            if !newValue.isEmpty { isUsed.store(true, ordering: .relaxed) }
            for (origin, numbers) in awaited { wake(numbers, at: origin) }
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
    ///   - isFurther: see ``RequestPace/enter(_:isFurther:loop:now:)``.
    ///   - loop: see ``RequestPace/enter(_:isFurther:loop:now:)``.
    ///   - wake: called on any thread when the request is to be looked at again; returns `false` if it never will be.
    /// - Returns: `nil` if the request may be sent now.
    func enter(
        _ origin: String, isFurther: Bool, loop: Int, now: MonotonicTime, wake: @escaping @Sendable () -> Bool
    ) -> (ticket: Ticket, step: RequestPace.Step)? {
        guard mayLimit else { return nil }
        let origin = Self.key(origin)
        var step: RequestPace.Step?
        let (number, awaited) = state.withLock { state -> (Int, [Int]) in
            if state.hosts[origin] == nil {
                guard let rate = state.rates.value(forOrigin: origin) else { return (0, []) }
                Self.sweep(&state, now: now)
                state.hosts[origin] = Host(pace: RequestPace(rate: rate))
            }
            state.lastNumber &+= 1
            let number = state.lastNumber
            let awaited = state.hosts[origin]?.change { host in
                step = host.pace.enter(number, isFurther: isFurther, loop: loop, now: now)
                if step != .send { host.wakes[number] = wake }
            }
            // The new request knows its own step.
            return (number, (awaited ?? []).filter { $0 != number })
        }
        self.wake(awaited, at: origin)
        guard let step, step != .send else { return nil }
        return (Ticket(self, origin: origin, number: number), step)
    }

    /// Whether any host may have a limit.
    var mayLimit: Bool { isUsed.load(ordering: .relaxed) }

    /// Whether no request waits for its turn.
    func isFree(_ origin: String) -> Bool {
        guard mayLimit else { return true }
        let origin = Self.key(origin)
        return state.withLock { $0.hosts[origin]?.pace.isEmpty ?? true }
    }

    /// Returns the origin without the dot that ends a full name: `name.` and `name` are one host.
    private static func key(_ origin: String) -> String { origin.replacing(".:", with: ":") }

    private func look(_ ticket: Ticket, now: MonotonicTime) -> RequestPace.Step {
        // A host with a waiting request is never removed.
        var step = RequestPace.Step.send
        let awaited = state.withLock { state in
            state.hosts[ticket.origin]?.change { host in
                step = host.pace.look(ticket.number, now: now)
                if step == .send { host.wakes[ticket.number] = nil }
            }
        }
        wake((awaited ?? []).filter { $0 != ticket.number }, at: ticket.origin)
        return step
    }

    private func leave(origin: String, number: Int) { wake(remove(number, at: origin), at: origin) }

    private func remove(_ number: Int, at origin: String) -> [Int] {
        state.withLock { state in
            state.hosts[origin]?.change { host in
                host.wakes[number] = nil
                host.pace.leave(number)
            } ?? []
        }
    }

    /// Makes waiting requests set their timers. A request whose loop has ended leaves the order.
    private func wake(_ numbers: [Int], at origin: String) {
        var numbers = numbers
        while let number = numbers.popLast() {
            guard let wake = state.withLock({ $0.hosts[origin]?.wakes[number] }), !wake() else { continue }
            numbers += remove(number, at: origin)
        }
    }

    /// Removes hosts whose next request could be sent at once, from time to time.
    private static func sweep(_ state: inout State, now: MonotonicTime) {
        guard state.hosts.count >= state.sweepAt else { return }
        state.hosts = state.hosts.filter { !$0.value.pace.isFree(now: now) }
        state.sweepAt = max(64, state.hosts.count * 2)
    }
}
