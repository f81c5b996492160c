import TaskModel
import TaskStore
import Transfer

/// The hosts of which no task is started now, since they gave trouble or asked to be left alone; what waits behind them
/// burns no attempt. A value without a clock: times are of one that no one sets.
struct HostGate {
    private var standings: HostStandings
    /// Names of the hosts that are left alone, by ``TaskStore/ReadyTask/hostMark``.
    private var names: [Int64: String] = [:]
    /// Hosts to which there was no way from this machine, and until when nobody tries again by itself.
    private var unreachable: [Int64: Milliseconds] = [:]
    private static let unreachableLimit = 4_096

    /// Hosts that asked to be left alone since that was last written down: until when.
    private var requests: [Int64: (host: String, until: Milliseconds)] = [:]
    /// Milliseconds from which such a wish outlives the daemon.
    private static let lastingHold: Milliseconds = 2_000

    init(policy: RetryPolicy) {
        standings = HostStandings(policy: policy)
    }

    mutating func apply(_ policy: RetryPolicy) { standings.policy = policy }

    /// Takes in how a task's run ended; see ``TaskWork/witness(of:)``.
    ///
    /// - Parameter error: `nil` where it succeeded.
    mutating func note(_ error: TransferError?, of work: TaskWork, now: Milliseconds) {
        let witness = work.witness(of: error)
        guard witness != .own else { return note(error, of: (work.hostMark, work.host), now: now) }
        // Whether the own host is well again, another task may find out.
        leave(work.hostMark, now: now)
        guard case .other(let origin) = witness else { return }
        note(error, of: (Mark.ofHost(origin), origin), isOwn: false, now: now)
    }

    /// - Parameter isOwn: the tasks that wait for the host name it themselves. A host that another server led to is held
    ///   back for as long as a failure is at most, and that does not outlive the daemon.
    private mutating func note(
        _ error: TransferError?, of place: (mark: Int64, host: String), isOwn: Bool = true, now: Milliseconds
    ) {
        let mark = place.mark
        if let error, RetryClass(error) == .whenNetworkChanges {
            if unreachable.count >= Self.unreachableLimit { unreachable.removeAll() }
            unreachable[mark] = now + RunConclusion.networkDelay(standings.policy)
        } else if !unreachable.isEmpty {
            unreachable[mark] = nil
        }
        // Of most hosts nothing needs to be remembered.
        if error == nil, names[mark] == nil { return }
        let host = names[mark] ?? place.host
        var retryAfter = error.flatMap { RetryClass($0) == .soon ? $0.retryAfter : nil }
        if !isOwn { retryAfter = retryAfter.map { min($0, max(0, standings.policy.maximumDelay / 1_000)) } }
        _ = standings.note(HostStandings.Outcome(error), of: host, retryAfter: retryAfter, now: now)
        names[mark] = standings.knows(host) ? host : nil
        if isOwn, retryAfter != nil, case let hold = standings.requestedHold(of: host, now: now),
            hold >= Self.lastingHold
        {
            requests[mark] = (host, now + hold)
        }
        // Of some hosts the standings have forgotten what they knew, to have room for others.
        if names.count > 2 * HostStandings.maximumHosts { names = names.filter { standings.knows($0.value) } }
    }

    /// Takes in that bytes come from a host.
    mutating func noteBytes(of mark: Int64) {
        if let host = names[mark] { standings.noteBytes(of: host) }
    }

    /// Takes in that there is another network: what could not be reached may be now.
    mutating func networkChanged() { unreachable.removeAll() }

    /// The wishes to be left alone that are to be written down.
    ///
    /// - Parameter offset: what the wall clock is ahead of the one that no one sets.
    mutating func takeRequests(offset: Milliseconds) -> [HostHold] {
        defer { requests.removeAll() }
        return requests.map { HostHold(mark: $0.key, host: $0.value.host, until: $0.value.until.addingClamped(offset)) }
    }

    /// Takes up a wish that a host expressed when another daemon ran, or this one did.
    mutating func restore(_ hold: HostHold, offset: Milliseconds, now: Milliseconds) {
        standings.hold(hold.host, milliseconds: hold.until.subtractingClamped(offset).subtractingClamped(now), now: now)
        if standings.knows(hold.host) { names[hold.mark] = hold.host }
    }

    /// Opens a host that a person wants asked now.
    mutating func open(_ mark: Int64) {
        unreachable[mark] = nil
        requests[mark] = nil
        if let host = names.removeValue(forKey: mark) { standings.forget(host) }
    }

    /// Milliseconds until the host is asked again, by whomever.
    func hold(of mark: Int64, now: Milliseconds) -> Milliseconds {
        names[mark].map { standings.hold(of: $0, now: now) } ?? 0
    }

    /// Whether nothing of the host may start now.
    func isClosed(_ mark: Int64, now: Milliseconds) -> Bool {
        if let until = unreachable[mark], until > now { return true }
        guard let host = names[mark] else { return false }
        return standings.wait(of: host, now: now) > 0
    }

    /// The hosts of which nothing may start now.
    func closed(now: Milliseconds) -> Set<Int64> {
        Set(names.lazy.filter { standings.wait(of: $0.value, now: now) > 0 }.map(\.key))
            .union(unreachable.lazy.filter { $0.value > now }.map(\.key))
    }

    /// Takes in that a task of the host starts: where it is the one to find out how the host is, all others wait for what it finds.
    mutating func enter(_ mark: Int64, now: Milliseconds) {
        if let host = names[mark] { _ = standings.admit(to: host, now: now) }
    }

    /// Takes in that a task of the host has found out nothing of it: another task may.
    mutating func leave(_ mark: Int64, now: Milliseconds) {
        if let host = names[mark] { _ = standings.note(.unknown, of: host, now: now) }
    }

    /// When the first of the closed hosts opens by itself.
    func nextOpening(now: Milliseconds) -> Milliseconds? {
        (names.values.map { standings.wait(of: $0, now: now).addingClamped(now) } + Array(unreachable.values))
            .filter { $0 > now }.min()
    }
}
