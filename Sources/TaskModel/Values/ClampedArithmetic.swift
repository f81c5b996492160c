/// Saturating arithmetic for numbers from untrusted sources (a client, a server, a clock or a file). An overflowing
/// result becomes `max` or `min`.
extension FixedWidthInteger {
    package func addingClamped(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other < 0 ? .min : .max) : sum
    }

    package func subtractingClamped(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        return overflows ? (other < 0 ? .max : .min) : difference
    }

    package func multipliedClamped(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        return overflows ? ((self < 0) == (other < 0) ? .max : .min) : product
    }
}
