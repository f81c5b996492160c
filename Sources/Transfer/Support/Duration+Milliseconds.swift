extension Duration {
    /// The duration in whole milliseconds, rounded up, so that a short time does not become none. A negative duration
    /// is 0, and one that is too long is `Int64.max`.
    var clampedMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1000)
        let (part, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000_000)
        let (sum, isTooMuch) = whole.addingReportingOverflow(part + (rest > 0 ? 1 : 0))
        return isTooLong || isTooMuch ? .max : sum
    }
}
