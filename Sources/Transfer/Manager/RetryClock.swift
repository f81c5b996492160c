import Curl

/// The time as retriers see it, so that tests can have their own.
struct RetryClock: Sendable {
    var now: @Sendable () -> MonotonicTime
    /// Sleeps for so many milliseconds, or until the Swift task is cancelled.
    var sleep: @Sendable (Int64) async -> Void

    static let system = RetryClock(
        now: { MonotonicTime.now() },
        sleep: { await CancellableSleep.sleep($0) })
}
