extension RetryDecision {
    /// Returns the decision to retry the request after a duration, as in `.retry(after: .seconds(2))`.
    ///
    /// - Parameter duration: the time to wait. It is rounded up to whole milliseconds; a negative one counts as 0, and
    ///   one beyond `Int64.max` milliseconds as that.
    public static func retry(after duration: Duration) -> RetryDecision {
        .retry(after: duration.clampedMilliseconds)
    }
}
