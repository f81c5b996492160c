/// How much of what is kept of the past each owner may have.
enum OwnerShares {
    /// All owners together may have so many times what one may: else the database would grow with every uid.
    static let together = 4

    /// What each of the owners may have at most: `limit`, or less where all of them together have too much. Then whoever
    /// has the least keeps all of it, and those who have the most have alike.
    ///
    /// - Parameter counts: what each of them has.
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
