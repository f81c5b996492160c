/// The limits on the amount of history kept for each owner.
enum OwnerShares {
    /// The limit for all owners together, as a multiple of the limit for one owner. Without it the database would grow
    /// with every uid.
    static let together = 4

    /// Returns the maximum count for each owner: `limit`, or less if all owners together exceed their limit. In that
    /// case the owners with the smallest counts keep everything, and those with the largest counts are cut to the same
    /// level.
    ///
    /// - Parameter counts: the current count of each owner.
    static func level(of counts: some Sequence<Int>, limit: Int) -> Int {
        let sorted = counts.map { min(max(0, $0), limit) }.sorted()
        let (product, isTooLarge) = limit.multipliedReportingOverflow(by: together)
        var rest = isTooLarge ? Int.max : product
        for (index, count) in sorted.enumerated() {
            let share = rest / (sorted.count - index)
            if count > share { return share }
            rest -= count
        }
        return limit
    }
}
