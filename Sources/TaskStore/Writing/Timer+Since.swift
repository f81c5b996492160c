package import CoreMetrics

extension CoreMetrics.Timer {
    /// Records the time since a moment.
    package func record(since moment: ContinuousClock.Instant) {
        let (seconds, attoseconds) = (ContinuousClock.now - moment).components
        self.recordNanoseconds(seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }
}
