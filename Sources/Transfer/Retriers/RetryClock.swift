import Curl

/// The clock that retriers use. Tests can replace it.
struct RetryClock: Sendable {
    var now: @Sendable () -> MonotonicTime
    /// Sleeps for the given number of milliseconds, or until the Swift task is cancelled.
    var sleep: @Sendable (Int64) async -> Void

    static let system = RetryClock(
        now: { MonotonicTime.now() },
        sleep: { await CancellableSleep.sleep($0) })
}
