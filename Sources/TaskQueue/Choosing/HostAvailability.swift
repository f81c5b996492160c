import TaskModel
import TaskStore
import Transfer

/// The set of hosts for which no task may start at the moment: because of failures, or for an owner because the host
/// asked a task of hers for a delay (Retry-After). Tasks that wait for a host on hold do not count attempts. The type
/// has no clock of its own; all times are monotonic.
struct HostAvailability {
    private var breakers: HostCircuitBreakers
    /// The names of hosts with a remembered state, by ``TaskStore/ReadyTask/hostFingerprint``.
    private var names: [Int64: String] = [:]
    /// The hosts that were unreachable from this machine, with the time until which they are not retried without a
    /// notification.
    private var unreachable: [Int64: (host: String, until: Milliseconds)] = [:]
    private static let unreachableLimit = 4_096

    private var delays = RequestedDelays()
    /// The delays that are not yet written to the store.
    private var unsaved: [TaskID: Milliseconds] = [:]
    /// The minimum length of a requested delay that is stored, in milliseconds.
    private static let lastingHold: Milliseconds = 2_000

    /// The proxies of the configuration that failed in front of hosts, by the hosts' fingerprints.
    private var proxies: [Int64: Int64] = [:]
    private static let proxiesLimit = 4_096

    init(policy: RetryPolicy) {
        breakers = HostCircuitBreakers(policy: policy)
    }

    mutating func apply(_ policy: RetryPolicy) {
        breakers.policy = policy
        // Another configuration may have another proxy.
        proxies.removeAll()
    }

    // MARK: Outcomes

    /// Records the end of a task's run; see ``TaskWork/responsibleHost(for:)``.
    ///
    /// - Parameter error: the error; `nil` where the run succeeded.
    mutating func record(_ error: TransferError?, of work: TaskWork, now: Milliseconds) {
        if error == nil { _ = endDelays(causedBy: [work.record.id], now: now) }  // an ended task's is not read
        let own = Place(fingerprint: work.hostFingerprint, host: work.host)
        let responsible = work.responsibleHost(for: error)
        if case .proxy = responsible {} else { recordOfProxy(error, of: work, now: now) }
        guard responsible != .own else { return record(error, at: own, work, isOwn: true, now: now) }
        // The run says nothing about the task's own host, so another task may probe it.
        if case .proxy = responsible {
            if let host = names[own.fingerprint] { _ = breakers.record(.unknown, of: host, now: now) }
        } else {
            withdraw(own.fingerprint, now: now)
        }
        switch responsible {
        case .other(let origin):
            record(
                error, at: Place(fingerprint: Fingerprint.ofHost(origin), host: origin), work, isOwn: false, now: now)
        case .proxy(let origin):
            let proxy = Place(fingerprint: Fingerprint.ofHost(origin), host: origin)
            if work.ownProxy == nil {
                if proxies.count >= Self.proxiesLimit { proxies.removeAll() }
                proxies[own.fingerprint] = proxy.fingerprint
            }
            record(error, at: proxy, work, isOwn: false, now: now)
        case .own, .none: break
        }
    }

    /// Records that the proxy in front of a task's host accepted a connection, or that nothing is known of it, as after
    /// an error of this machine.
    private mutating func recordOfProxy(_ error: TransferError?, of work: TaskWork, now: Milliseconds) {
        let proxy = work.ownProxy.map { Fingerprint.ofHost($0) } ?? proxies[work.hostFingerprint]
        guard let proxy, let host = names[proxy] else { return }
        let isSilent = if case .unknown = HostCircuitBreakers.Outcome(error) { error != nil } else { false }
        _ = breakers.record(isSilent ? .unknown : .alive, of: host, now: now)
        if !breakers.knows(host) { names[proxy] = nil }
    }

    private struct Place {
        var fingerprint: Int64
        var host: String
    }

    /// Records an outcome for a host.
    ///
    /// - Parameter isOwn: Whether the waiting tasks name the host themselves. A host that was reached by way of another
    ///   server is held back at most for the longest failure delay, and that hold is not stored.
    private mutating func record(
        _ error: TransferError?, at place: Place, _ work: TaskWork, isOwn: Bool, now: Milliseconds
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
        // Other URLs of a host that responds may be in order. The task's own back-off delays its next request.
        let source = error?.code == .httpStatus ? work.record.id.rawValue : nil
        // A task may allow itself less time than a host needs.
        let isHasty = error?.code == .timedOut && work.record.specification.connectTimeout != nil
        _ = breakers.record(
            isHasty ? .unknown : HostCircuitBreakers.Outcome(error), of: host, bySource: source, now: now)
        names[fingerprint] = breakers.knows(host) ? host : nil
        if let retryAfter = error?.pauseOfHost {
            let bound = max(0, breakers.policy.maximumDelay)
            let asked = RetryPolicy.hold(retryAfter: retryAfter)
            let until = now.addingClamped(isOwn ? asked : min(asked, bound))
            delay(
                fingerprint, host,
                .init(
                    task: work.record.id, owner: work.record.owner, until: until,
                    untilForAll: min(until, now.addingClamped(bound))), now: now)
            if isOwn, asked >= Self.lastingHold { unsaved[work.record.id] = until }
        }
        // The breakers forget hosts in favour of others when they are full.
        if names.count > 2 * HostCircuitBreakers.maximumHosts { names = names.filter { breakers.knows($0.value) } }
    }

    private mutating func delay(
        _ fingerprint: Int64, _ host: String, _ delay: RequestedDelays.Delay, now: Milliseconds
    ) {
        guard delay.until > now else { return }
        delays.add(delay, of: fingerprint, host, now: now)
        guard let shared = delays.end(ofAllAt: fingerprint, now: now) else { return }
        breakers.hold(host, milliseconds: shared.subtractingClamped(now), now: now)
        names[fingerprint] = host
    }

    /// Records that bytes are received from a host.
    mutating func recordBytes(of fingerprint: Int64) {
        for key in [fingerprint, proxies[fingerprint]] {
            if let host = key.flatMap({ names[$0] }) { breakers.recordBytes(of: host) }
        }
    }

    /// Forgets unreachable hosts after a network change, since they may be reachable now.
    mutating func networkChanged() { unreachable.removeAll() }

    // MARK: Requested delays

    /// Returns and clears the requested delays that are to be stored.
    ///
    /// - Parameter offset: the offset of the wall clock from the monotonic clock.
    mutating func drainUnsavedHolds(offset: Milliseconds) -> [HostHold] {
        defer { unsaved.removeAll() }
        return unsaved.map { HostHold(task: $0.key, until: $0.value.addingClamped(offset)) }
    }

    /// Restores a stored delay that a host requested from this or an earlier daemon process. It binds only the task's
    /// owner.
    mutating func restore(_ hold: StoredHold, offset: Milliseconds, now: Milliseconds) {
        let rest = hold.until.subtractingClamped(offset).subtractingClamped(now)
        delay(
            hold.fingerprint, hold.host,
            .init(
                task: hold.task, owner: hold.owner, until: now.addingClamped(min(rest, RetryPolicy.longestHold)),
                untilForAll: now), now: now)
    }

    /// Ends the delays that hosts requested in their answers to these tasks, which have ended or ask for something else
    /// now.
    ///
    /// - Returns: the tasks that had caused one.
    mutating func endDelays(causedBy tasks: some Sequence<TaskID>, now: Milliseconds) -> [TaskID] {
        var ended: [TaskID] = []
        for task in tasks {
            guard let fingerprint = delays.remove(task) else { continue }
            unsaved[task] = nil
            ended.append(task)
            guard delays.end(ofAllAt: fingerprint, now: now) == nil, let host = names[fingerprint] else { continue }
            breakers.endRequestedHold(of: host)
            if !breakers.knows(host) { names[fingerprint] = nil }
        }
        return ended
    }

    /// Ends the hold on a host because an owner wants it contacted now.
    ///
    /// - Returns: the tasks whose answers caused the owner's hold, and the name of the host; `nil` where there was none.
    mutating func endHold(
        _ fingerprint: Int64, of owner: UInt32, now: Milliseconds
    ) -> (host: String, tasks: [TaskID])? {
        guard isOnHold(fingerprint, owner: owner, now: now) else { return nil }
        let route = [fingerprint, proxies[fingerprint]].compactMap(\.self)
        let host =
            delays.host(fingerprint)
            ?? route.lazy.compactMap { [names, unreachable] in
                names[$0] ?? unreachable[$0]?.host
            }.first
        for key in route {
            unreachable[key] = nil
            if let name = names.removeValue(forKey: key) { breakers.forget(name) }
        }
        let tasks = delays.remove(of: owner, at: fingerprint)
        for task in tasks { unsaved[task] = nil }
        return (host ?? "", tasks)
    }

    // MARK: Holds

    /// Returns the remaining time of a hold after failures, or of one that the host requested, in milliseconds.
    ///
    /// - Returns: 0 for a host without a route and while a probe is under way, since their end is not known.
    func hold(of fingerprint: Int64, owner: UInt32, now: Milliseconds) -> Milliseconds {
        let breaker = { [names, breakers] (key: Int64) in names[key].map { breakers.hold(of: $0, now: now) } ?? 0 }
        let requested = delays.end(of: owner, at: fingerprint).subtractingClamped(now)
        return max(0, breaker(fingerprint), proxies[fingerprint].map(breaker) ?? 0, requested)
    }

    /// Whether no task of the owner may start now at the host: it is on hold, has no route, or is being probed.
    func isOnHold(_ fingerprint: Int64, owner: UInt32, now: Milliseconds) -> Bool {
        delays.end(of: owner, at: fingerprint) > now || isClosed(fingerprint, now: now)
            || proxies[fingerprint].map { isClosed($0, now: now) } ?? false
    }

    /// Whether no task of anybody may start now at the host or proxy.
    func isClosed(_ fingerprint: Int64, now: Milliseconds) -> Bool {
        if let until = unreachable[fingerprint]?.until, until > now { return true }
        return names[fingerprint].map { breakers.wait(of: $0, now: now) > 0 } ?? false
    }

    /// Returns the hosts at which no task of the owner may start now.
    func hostsOnHold(for owner: UInt32, now: Milliseconds) -> Set<Int64> {
        let closed = Set(names.keys).union(unreachable.keys).filter { isClosed($0, now: now) }
        let behind = closed.isEmpty ? [] : proxies.lazy.filter { closed.contains($0.value) }.map(\.key)
        return closed.union(behind).union(delays.hosts(heldFor: owner, now: now))
    }

    /// Returns the hosts on hold with the causes, the end of each hold on the monotonic clock.
    func heldHosts(now: Milliseconds) -> [HeldHost] {
        var held: [HeldHost] = []
        for (fingerprint, host) in names where breakers.wait(of: host, now: now) > 0 {
            let hold = breakers.hold(of: host, now: now)
            let cause: HeldHost.Cause =
                breakers.requestedHold(of: host, now: now) > 0 ? .retryAfter : hold > 0 ? .failures : .probe
            held.append(
                HeldHost(fingerprint: fingerprint, host: host, cause: cause, until: hold > 0 ? now + hold : nil))
        }
        let known = Set(held.map(\.fingerprint))
        for (fingerprint, place) in unreachable where place.until > now && !known.contains(fingerprint) {
            held.append(HeldHost(fingerprint: fingerprint, host: place.host, cause: .noRoute, until: place.until))
        }
        let behind = Dictionary(grouping: proxies.keys) { proxies[$0] ?? 0 }
        for index in held.indices { held[index].behind = Set(behind[held[index].fingerprint] ?? []) }
        return held + delays.held(now: now)
    }

    // MARK: Probes

    /// Records that a task of the host starts. Where it is the probe of a recovering host, all other tasks wait for its
    /// result.
    mutating func admit(_ fingerprint: Int64, now: Milliseconds) {
        for key in [fingerprint, proxies[fingerprint]] {
            if let host = key.flatMap({ names[$0] }) { _ = breakers.admit(to: host, now: now) }
        }
    }

    /// Records that a task learned nothing about the host, so another task may probe it.
    mutating func withdraw(_ fingerprint: Int64, now: Milliseconds) {
        for key in [fingerprint, proxies[fingerprint]] {
            if let host = key.flatMap({ names[$0] }) { _ = breakers.record(.unknown, of: host, now: now) }
        }
    }

    /// Returns the monotonic time at which the first hold ends by itself.
    func nextHoldEnd(now: Milliseconds) -> Milliseconds? {
        (names.values.map { breakers.wait(of: $0, now: now).addingClamped(now) } + unreachable.values.map(\.until)
            + delays.ends).filter { $0 > now }.min()
    }
}

/// The delays that hosts requested (Retry-After), each with the task whose request was answered so. A delay binds the
/// owner of that task. It ends with its time or with the task.
private struct RequestedDelays {
    struct Delay {
        var task: TaskID
        var owner: UInt32
        var until: Milliseconds
        /// The time until which the delay counts where other owners' tasks met one too. The host is then held for all.
        var untilForAll: Milliseconds
    }

    private struct Host {
        var name: String
        var delays: [TaskID: Delay] = [:]
        /// The end of the last delay of each owner.
        var ends: [UInt32: Milliseconds] = [:]
    }

    /// The maximum number of delays. Beyond it, the one that ends first is forgotten.
    static let maximumCount = 4_096

    private var hosts: [Int64: Host] = [:]
    private var hostsOfTasks: [TaskID: Int64] = [:]

    mutating func add(_ delay: Delay, of fingerprint: Int64, _ host: String, now: Milliseconds) {
        _ = remove(delay.task)
        if hostsOfTasks.count >= Self.maximumCount { makeRoom(now: now) }
        hostsOfTasks[delay.task] = fingerprint
        hosts[fingerprint, default: Host(name: host)].delays[delay.task] = delay
        let end = max(delay.until, end(of: delay.owner, at: fingerprint))
        hosts[fingerprint]?.ends[delay.owner] = end
    }

    private mutating func makeRoom(now: Milliseconds) {
        let all = hosts.values.flatMap(\.delays.values)
        var gone = all.filter { $0.until <= now }
        if gone.isEmpty, let first = all.min(by: { $0.until < $1.until }) { gone = [first] }
        for delay in gone { _ = remove(delay.task) }
    }

    /// Removes the delay that a task caused.
    ///
    /// - Returns: the host; `nil` if there is none.
    mutating func remove(_ task: TaskID) -> Int64? {
        guard let fingerprint = hostsOfTasks.removeValue(forKey: task),
            let delay = hosts[fingerprint]?.delays.removeValue(forKey: task)
        else { return nil }
        let others = hosts[fingerprint]?.delays.values.filter { $0.owner == delay.owner }.map(\.until)
        hosts[fingerprint]?.ends[delay.owner] = others?.max()
        if hosts[fingerprint]?.delays.isEmpty == true { hosts[fingerprint] = nil }
        return fingerprint
    }

    /// Removes the delays that the tasks of an owner caused.
    ///
    /// - Returns: these tasks.
    mutating func remove(of owner: UInt32, at fingerprint: Int64) -> [TaskID] {
        let tasks = hosts[fingerprint]?.delays.values.filter { $0.owner == owner }.map(\.task) ?? []
        for task in tasks { hostsOfTasks[task] = nil }
        for task in tasks { hosts[fingerprint]?.delays[task] = nil }
        hosts[fingerprint]?.ends[owner] = nil
        if hosts[fingerprint]?.delays.isEmpty == true { hosts[fingerprint] = nil }
        return tasks
    }

    func host(_ fingerprint: Int64) -> String? { hosts[fingerprint]?.name }

    /// Returns the end of the delays of an owner, which may be past.
    func end(of owner: UInt32, at fingerprint: Int64) -> Milliseconds { hosts[fingerprint]?.ends[owner] ?? .min }

    /// Returns the end of what tasks of at least two owners met; `nil` where there is no such delay.
    func end(ofAllAt fingerprint: Int64, now: Milliseconds) -> Milliseconds? {
        var ends: [UInt32: Milliseconds] = [:]
        for delay in (hosts[fingerprint]?.delays ?? [:]).values where delay.untilForAll > now {
            ends[delay.owner] = max(ends[delay.owner] ?? .min, delay.untilForAll)
        }
        return ends.values.sorted(by: >).dropFirst().first
    }

    func hosts(heldFor owner: UInt32, now: Milliseconds) -> some Sequence<Int64> {
        hosts.lazy.filter { $0.value.ends[owner].map { $0 > now } ?? false }.map(\.key)
    }

    var ends: [Milliseconds] { hosts.values.flatMap(\.ends.values) }

    func held(now: Milliseconds) -> [HeldHost] {
        hosts.flatMap { fingerprint, host in
            host.ends.filter { $0.value > now }.map { owner, end in
                HeldHost(fingerprint: fingerprint, host: host.name, owner: owner, cause: .retryAfter, until: end)
            }
        }
    }
}
