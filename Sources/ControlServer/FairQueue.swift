import NIOCore

/// A queue of requests that wait for a share. Each user's requests are in order of arrival, and the users take turns.
///
/// A value without I/O.
struct FairQueue<Waiter> {
    private struct Entry {
        let owner: ObjectIdentifier
        let amount: Int
        let waiter: Waiter
    }

    /// The users with waiting requests; the first one is next.
    private var turns = CircularBuffer<UInt32>()
    private var entries: [UInt32: CircularBuffer<Entry>] = [:]

    var isEmpty: Bool { turns.isEmpty }

    func isWaiting(_ user: UInt32) -> Bool { entries[user] != nil }

    /// - Parameter owner: the identity by which the entry can be removed.
    mutating func append(_ waiter: Waiter, amount: Int, user: UInt32, owner: ObjectIdentifier) {
        if entries[user] == nil { turns.append(user) }
        entries[user, default: CircularBuffer()].append(Entry(owner: owner, amount: amount, waiter: waiter))
    }

    mutating func remove(user: UInt32, owner: ObjectIdentifier) {
        entries[user]?.removeAll { $0.owner == owner }
        forgetIfEmpty(user)
    }

    /// Dequeues the first request whose verdict is `.yes`, and moves its user behind the other users.
    ///
    /// If all users together hold too much, no request overtakes the next one. Otherwise a large share would never
    /// become free.
    ///
    /// - Parameter take: takes the share.
    mutating func next(
        _ verdict: (_ amount: Int, _ user: UInt32) -> ResourceQuota.Verdict,
        take: (_ amount: Int, _ user: UInt32) -> Void
    ) -> Waiter? {
        for (index, user) in turns.enumerated() {
            guard let first = entries[user]?.first else { continue }
            switch verdict(first.amount, user) {
            case .userHasTooMuch: continue
            case .full: return nil
            case .yes:
                entries[user]?.removeFirst()
                turns.remove(at: turns.index(turns.startIndex, offsetBy: index))
                turns.append(user)
                forgetIfEmpty(user)
                take(first.amount, user)
                return first.waiter
            }
        }
        return nil
    }

    private mutating func forgetIfEmpty(_ user: UInt32) {
        guard entries[user]?.isEmpty == true else { return }
        entries[user] = nil
        turns.removeAll { $0 == user }
    }
}
