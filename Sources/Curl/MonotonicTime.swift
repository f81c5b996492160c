#if canImport(Glibc)
import Glibc
#endif

/// Nanoseconds of a clock that no one sets: for deadlines and for stalls.
package struct MonotonicTime: Comparable, Sendable {
    package let nanoseconds: UInt64

    package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    package static func now() -> MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    package func advanced(milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: nanoseconds &+ UInt64(max(0, milliseconds)) * 1_000_000)
    }

    /// Milliseconds from `earlier` to here, 0 where it is later.
    package func milliseconds(since earlier: MonotonicTime) -> Int64 {
        nanoseconds > earlier.nanoseconds ? Int64((nanoseconds - earlier.nanoseconds) / 1_000_000) : 0
    }

    /// Milliseconds until `later`, rounded up, 0 where it has passed: what a wait has to last.
    func milliseconds(until later: MonotonicTime) -> Int64 {
        later.nanoseconds > nanoseconds ? Int64((later.nanoseconds - nanoseconds + 999_999) / 1_000_000) : 0
    }
}
