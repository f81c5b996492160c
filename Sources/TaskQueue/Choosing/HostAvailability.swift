import TaskModel
import TaskStore
import Transfer

/// The set of hosts for which no task may start at the moment, because of failures or because the host requested a
/// delay (Retry-After). Tasks that wait for a host on hold do not count attempts. The type has no clock of its own; all
/// times are monotonic.
struct HostAvailability {
    private var breakers: HostCircuitBreakers
    /// The names of hosts with a remembered state, by ``TaskStore/ReadyTask/hostFingerprint``.
    private var names: [Int64: String] = [:]
    /// The hosts that were unreachable from this machine, with the time until which they are not retried without a
    /// notification.
    private var unreachable: [Int64: (host: String, until: Milliseconds)] = [:]
    private static let unreachableLimit = 4_096

    /// The delays that hosts requested and that are not yet written to the store, with their end.
    private var unsavedHolds: [Int64: (host: String, until: Milliseconds)] = [:]
    /// The minimum length of a requested delay that is stored, in milliseconds.
    private static let lastingHold: Milliseconds = 2_000

    init(policy: RetryPolicy) {
        breakers = HostCircuitBreakers(policy: policy)
    }

    mutating func apply(_ policy: RetryPolicy) { breakers.policy = policy }

    /// Records the end of a task's run; see ``TaskWork/responsibleHost(for:)``.
    ///
    /// - Parameter error: the error; `nil` where the run succeeded.
    mutating func record(_ error: TransferError?, of work: TaskWork, now: Milliseconds) {
        let responsible = work.responsibleHost(for: error)
        guard responsible != .own else { return record(error, of: (work.hostFingerprint, work.host), now: now) }
        // The run says nothing about the task's own host, so another task may probe it.
        withdraw(work.hostFingerprint, now: now)
        guard case .other(let origin) = responsible else { return }
        record(error, of: (Fingerprint.ofHost(origin), origin), isOwn: false, now: now)
    }

    /// Records an outcome for a host.
    ///
    /// - Parameter isOwn: Whether the waiting tasks name the host themselves. A host that was reached by way of another
    ///   server is held back at most for the longest failure delay, and that hold is not stored.
    private mutating func record(
        _ error: TransferError?, of place: (fingerprint: Int64, host: String), isOwn: Bool = true, now: Milliseconds
    ) {
        let fingerprint = place.fingerprint
        if let error, RetryClass(error) == .whenNetworkChanges {
            if unreachable.count >= Self.unreachableLimit { unreachable.removeAll() }
            unreachable[fingerprint] = (place.host, now + RunOutcomePolicy.networkDelay(breakers.policy))
        } else if !unreachable.isEmpty {
            unreachable[fingerprint] = nil
        }
        // Most hosts have no state that must be remembered.
        if error == nil, names[fingerprint] == nil { return }
        let host = names[fingerprint] ?? place.host
        var retryAfter = error?.pauseOfHost
        if !isOwn { retryAfter = retryAfter.map { min($0, max(0, breakers.policy.maximumDelay / 1_000)) } }
        _ = breakers.record(HostCircuitBreakers.Outcome(error), of: host, retryAfter: retryAfter, now: now)
        names[fingerprint] = breakers.knows(host) ? host : nil
        if isOwn, retryAfter != nil, case let hold = breakers.requestedHold(of: host, now: now),
            hold >= Self.lastingHold
        {
            unsavedHolds[fingerprint] = (host, now + hold)
        }
        // The breakers forget hosts in favour of others when they are full.
        if names.count > 2 * HostCircuitBreakers.maximumHosts { names = names.filter { breakers.knows($0.value) } }
    }

    /// Records that bytes are received from a host.
    mutating func recordBytes(of fingerprint: Int64) {
        if let host = names[fingerprint] { breakers.recordBytes(of: host) }
    }

    /// Forgets unreachable hosts after a network change, since they may be reachable now.
    mutating func networkChanged() { unreachable.removeAll() }

    /// Returns and clears the requested delays that are to be stored.
    ///
    /// - Parameter offset: the offset of the wall clock from the monotonic clock.
    mutating func drainUnsavedHolds(offset: Milliseconds) -> [HostHold] {
        defer { unsavedHolds.removeAll() }
        return unsavedHolds.map {
            HostHold(fingerprint: $0.key, host: $0.value.host, until: $0.value.until.addingClamped(offset))
        }
    }

    /// Restores a stored delay that a host requested from this or an earlier daemon process.
    mutating func restore(_ hold: HostHold, offset: Milliseconds, now: Milliseconds) {
        breakers.hold(hold.host, milliseconds: hold.until.subtractingClamped(offset).subtractingClamped(now), now: now)
        if breakers.knows(hold.host) { names[hold.fingerprint] = hold.host }
    }

    /// Ends the hold on a host because a user wants it contacted now.
    mutating func endHold(_ fingerprint: Int64) {
        unreachable[fingerprint] = nil
        unsavedHolds[fingerprint] = nil
        if let host = names.removeValue(forKey: fingerprint) { breakers.forget(host) }
    }

    /// Returns the remaining time of a hold after failures, or of one that the host requested, in milliseconds.
    ///
    /// - Returns: 0 for a host without a route and while a probe is under way, since their end is not known.
    func hold(of fingerprint: Int64, now: Milliseconds) -> Milliseconds {
        names[fingerprint].map { breakers.hold(of: $0, now: now) } ?? 0
    }

    /// Whether no task of the host may start now: it is on hold, has no route, or is being probed.
    func isOnHold(_ fingerprint: Int64, now: Milliseconds) -> Bool {
        if let until = unreachable[fingerprint]?.until, until > now { return true }
        guard let host = names[fingerprint] else { return false }
        return breakers.wait(of: host, now: now) > 0
    }

    /// Returns the hosts for which no task may start now.
    func hostsOnHold(now: Milliseconds) -> Set<Int64> {
        Set(names.lazy.filter { breakers.wait(of: $0.value, now: now) > 0 }.map(\.key))
            .union(unreachable.lazy.filter { $0.value.until > now }.map(\.key))
    }

    /// Returns the hosts on hold with the causes, the end of each hold on the monotonic clock.
    func heldHosts(now: Milliseconds) -> [HeldHost] {
        var held: [HeldHost] = []
        for (fingerprint, host) in names {
            let hold = breakers.hold(of: host, now: now)
            if breakers.requestedHold(of: host, now: now) > 0 {
                held.append(HeldHost(fingerprint: fingerprint, host: host, cause: .retryAfter, until: now + hold))
            } else if hold > 0 {
                held.append(HeldHost(fingerprint: fingerprint, host: host, cause: .failures, until: now + hold))
            } else if breakers.wait(of: host, now: now) > 0 {
                held.append(HeldHost(fingerprint: fingerprint, host: host, cause: .probe, until: nil))
            }
        }
        let known = Set(held.map(\.fingerprint))
        for (fingerprint, place) in unreachable where place.until > now && !known.contains(fingerprint) {
            held.append(HeldHost(fingerprint: fingerprint, host: place.host, cause: .noRoute, until: place.until))
        }
        return held
    }

    /// Records that a task of the host starts. Where it is the probe of a recovering host, all other tasks wait for its
    /// result.
    mutating func admit(_ fingerprint: Int64, now: Milliseconds) {
        if let host = names[fingerprint] { _ = breakers.admit(to: host, now: now) }
    }

    /// Records that a task learned nothing about the host, so another task may probe it.
    mutating func withdraw(_ fingerprint: Int64, now: Milliseconds) {
        if let host = names[fingerprint] { _ = breakers.record(.unknown, of: host, now: now) }
    }

    /// Returns the monotonic time at which the first hold ends by itself.
    func nextHoldEnd(now: Milliseconds) -> Milliseconds? {
        (names.values.map { breakers.wait(of: $0, now: now).addingClamped(now) } + unreachable.values.map(\.until))
            .filter { $0 > now }.min()
    }
}
