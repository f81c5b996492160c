import Glibc

/// A moment on the monotonic clock until which one is willing to wait.
public struct Deadline: Sendable, Equatable, Comparable {
    /// Nanoseconds on `CLOCK_MONOTONIC`; the largest value stands for "never".
    private let nanoseconds: Int64

    private init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Waits as long as it takes.
    public static let never = Deadline(nanoseconds: .max)

    /// - Parameter seconds: from now; negative ones count as none, and centuries as never.
    public static func after(seconds: Double) -> Deadline {
        guard seconds < 1e9 else { return never }
        return Deadline(nanoseconds: now() + Int64(max(0, seconds) * 1e9))
    }

    public static func < (left: Deadline, right: Deadline) -> Bool { left.nanoseconds < right.nanoseconds }

    public var isOver: Bool { self != .never && Self.now() >= nanoseconds }

    /// What poll(2) takes: milliseconds rounded up, so that nobody wakes just before the moment; −1 for never.
    var pollTimeout: Int32 {
        guard self != .never else { return -1 }
        let left = nanoseconds - Self.now()
        return left <= 0 ? 0 : Int32(min((left + 999_999) / 1_000_000, 1_000_000_000))
    }

    private static func now() -> Int64 {
        var time = timespec()
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails for an unknown clock alone
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
