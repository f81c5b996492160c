/// A fair choice among keys: the key with the fewest running tasks is next, and among equals the one that was served
/// least recently.
///
/// A new key may start ``credit`` tasks before it is held to the same number as the others. A few tasks next to
/// thousands then complete as soon as slots become free, and the owner of the thousands waits no longer than those few
/// take.
struct FairShare<Key: Hashable & Sendable>: Sendable {
    /// A claim to be next. The smallest claim wins.
    struct Claim: Comparable {
        fileprivate var running: Int
        /// The sequence number of the key's last start.
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

    /// Forgets the idle keys that have nothing to start. A forgotten key counts as new when it returns.
    mutating func forgetIdle(but waiting: Set<Key>) {
        shares = shares.filter { $0.value.running > 0 || waiting.contains($0.key) }
    }

    var count: Int { shares.count }
}
