import Glibc

/// A point in time on the monotonic clock at which a wait ends.
public struct Deadline: Sendable, Equatable, Comparable {
    /// Nanoseconds on `CLOCK_MONOTONIC`; the largest value stands for "never".
    private let nanoseconds: Int64

    private init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A deadline that never passes.
    public static let never = Deadline(nanoseconds: .max)

    /// Returns the deadline `seconds` from now.
    ///
    /// - Parameter seconds: negative values count as 0; values of 1e9 and above result in ``never``.
    public static func after(seconds: Double) -> Deadline {
        guard seconds < 1e9 else { return never }
        return Deadline(nanoseconds: now() + Int64(max(0, seconds) * 1e9))
    }

    public static func < (left: Deadline, right: Deadline) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Whether the time has passed.
    public var isOver: Bool { self != .never && Self.now() >= nanoseconds }

    /// The seconds until the time; `nil` for ``never``.
    package var secondsLeft: Double? {
        self == .never ? nil : Double(max(0, nanoseconds - Self.now())) / 1e9
    }

    /// The time-out for poll(2) in milliseconds, or −1 for ``never``. The value is rounded up, so that poll does not
    /// return just before the deadline.
    var pollTimeout: Int32 {
        guard self != .never else { return -1 }
        let left = nanoseconds - Self.now()
        return left <= 0 ? 0 : Int32(min((left + 999_999) / 1_000_000, 1_000_000_000))
    }

    private static func now() -> Int64 {
        var time = timespec()
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails only for an unknown clock
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
