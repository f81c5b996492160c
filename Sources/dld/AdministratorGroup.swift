import ControlServer
import Dispatch
import Synchronization
import TaskQueue

/// The members of `control.admin-group`: processes that the kernel says are in the group, and users whom the system's
/// databases list as members or whose primary group it is.
///
/// The databases are read anew when an answer is older than ``lifetime``, so that a change of the group needs no reload.
/// They may be on the network: the lookup runs on a thread of its own, and after ``patience`` the last answer is used.
final class AdministratorGroup: Sendable {
    let gid: UInt32
    /// The time for which an answer is used.
    static let lifetime: Duration = .seconds(5)
    /// The longest wait for a lookup.
    private static let patience: DispatchTimeInterval = .milliseconds(200)
    /// The number of users whose answers are kept.
    private static let capacity = 4_096

    private struct Answer {
        var isMember = false
        /// The time of the answer; `nil` before the first one.
        var at: ContinuousClock.Instant?
        /// The lookup in progress. Everyone who waits for it waits for this group.
        var lookup: DispatchGroup?
    }

    private let answers = Mutex<[UInt32: Answer]>([:])
    private let lookUp: @Sendable (_ uid: UInt32) -> Bool
    /// The maximum number of lookups at the same time. Each has a thread of its own.
    private static let lookupsTogether = 16

    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - lookUp: returns whether the system's databases have a user as a member.
    ///   - now: returns the time.
    init(
        gid: UInt32, lookUp: (@Sendable (_ uid: UInt32) -> Bool)? = nil,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.gid = gid
        self.now = now
        self.lookUp = lookUp ?? { AccountNames.groups(of: $0).contains(gid) }
    }

    func contains(_ peer: Peer) -> Bool {
        if peer.groups.contains(gid) { return true }
        let uid = peer.uid
        let now = now()
        let (known, lookup) = answers.withLock { answers -> (Bool?, DispatchGroup?) in
            if answers.count >= Self.capacity { answers = answers.filter { $0.value.lookup != nil } }
            var answer = answers[uid] ?? Answer()
            if let at = answer.at, now - at < Self.lifetime { return (answer.isMember, nil) }
            // While a lookup takes long, the last answer is used without waiting.
            if answer.lookup != nil, answer.at != nil { return (answer.isMember, nil) }
            if answer.lookup == nil, answers.count < Self.capacity,
                answers.values.count(where: { $0.lookup != nil }) < Self.lookupsTogether
            {
                answer.lookup = startLookup(of: uid, at: now)
                answers[uid] = answer
            }
            return (nil, answer.lookup)
        }
        if let known { return known }
        let isLate = lookup?.wait(timeout: .now() + Self.patience) == .timedOut
        return answers.withLock { answers in
            // Until the lookup ends, later requests do not wait again.
            if isLate, answers[uid]?.at == nil { answers[uid]?.at = now }
            return answers[uid]?.isMember ?? false
        }
    }

    private func startLookup(of uid: UInt32, at now: ContinuousClock.Instant) -> DispatchGroup {
        let lookup = DispatchGroup()
        lookup.enter()
        // A serial queue gets a thread at once. A concurrent one would wait for a thread of the pool, all of which may
        // wait for this lookup.
        DispatchQueue(label: "dld-groups").async { [self] in
            let isMember = lookUp(uid)
            answers.withLock { $0[uid] = Answer(isMember: isMember, at: now) }
            lookup.leave()
        }
        return lookup
    }
}
