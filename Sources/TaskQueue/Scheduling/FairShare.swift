/// The choice of who is next: who has the least running, and of those who have alike, who was served the longest ago.
///
/// Whoever comes anew may start ``credit`` before being held to the same number as the others: a few tasks beside
/// thousands are done as soon as places become free, and who has thousands waits no longer for it than those few take.
struct FairShare<Key: Hashable> {
    /// A claim to be next; the smallest wins.
    struct Claim: Comparable {
        fileprivate var running: Int
        /// The number of the last start.
        fileprivate var served: Int

        static func < (one: Claim, other: Claim) -> Bool {
            (one.running, one.served) < (other.running, other.served)
        }
    }

    private struct Share {
        var running = 0
        var credit: Int
        var served = 0
    }

    var credit: Int
    private var shares: [Key: Share] = [:]
    private var starts = 0

    init(credit: Int) {
        self.credit = credit
    }

    func claim(of key: Key) -> Claim {
        guard let share = shares[key] else { return Claim(running: -credit, served: 0) }
        return Claim(running: share.running - share.credit, served: share.served)
    }

    mutating func start(_ key: Key) {
        var share = shares[key] ?? Share(credit: credit)
        starts += 1
        share.running += 1
        share.credit = max(0, share.credit - 1)
        share.served = starts
        shares[key] = share
    }

    mutating func end(_ key: Key) {
        shares[key]?.running -= 1
    }

    /// Forgets all but these, which alone have something to start: those among the others that run nothing come anew when they come again.
    mutating func forgetIdle(but waiting: Set<Key>) {
        shares = shares.filter { $0.value.running > 0 || waiting.contains($0.key) }
    }

    var count: Int { shares.count }
}
