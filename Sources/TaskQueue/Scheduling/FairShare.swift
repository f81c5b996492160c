/// Who of several had the least, by what runs of each.
///
/// Whoever comes anew may start ``credit`` before being held to the same number as the others: a few tasks beside
/// thousands are done as soon as places become free, and who has thousands waits no longer for it than those few take.
struct FairShare<Key: Hashable> {
    private struct Share {
        var running = 0
        var credit: Int
    }

    private let credit: Int
    private var shares: [Key: Share] = [:]

    init(credit: Int) {
        self.credit = credit
    }

    /// Whoever is smallest is next.
    func weight(of key: Key) -> Int {
        guard let share = shares[key] else { return -credit }
        return share.running - share.credit
    }

    mutating func start(_ key: Key) {
        var share = shares[key] ?? Share(credit: credit)
        share.running += 1
        share.credit = max(0, share.credit - 1)
        shares[key] = share
    }

    mutating func end(_ key: Key) {
        shares[key]?.running -= 1
    }

    /// Only these have something to start: those among the others that run nothing come anew when they come again.
    mutating func forgetIdle(but waiting: Set<Key>) {
        shares = shares.filter { $0.value.running > 0 || waiting.contains($0.key) }
    }

    var count: Int { shares.count }
}
