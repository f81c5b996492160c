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
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails for an unknown clock alone
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// Whole milliseconds of the clock.
    package var milliseconds: Int64 { Int64(nanoseconds / 1_000_000) }

    /// Processor time that the calling thread has used.
    package static func ofThread() -> MonotonicTime {
        var time = timespec()
        _ = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)  // fails for an unknown clock alone
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// What lies beyond the end of the clock is its end.
    package func advanced(milliseconds: Int64) -> MonotonicTime {
        let (distance, isTooFar) = UInt64(max(0, milliseconds)).multipliedReportingOverflow(by: 1_000_000)
        let (sum, isBeyond) = nanoseconds.addingReportingOverflow(distance)
        return MonotonicTime(nanoseconds: isTooFar || isBeyond ? .max : sum)
    }

    /// Milliseconds from `earlier` to here, 0 where it is later.
    package func milliseconds(since earlier: MonotonicTime) -> Int64 {
        nanoseconds > earlier.nanoseconds ? Int64((nanoseconds - earlier.nanoseconds) / 1_000_000) : 0
    }

    /// Milliseconds until `later`, rounded up, 0 where it has passed: what a wait has to last.
    package func milliseconds(until later: MonotonicTime) -> Int64 {
        guard later.nanoseconds > nanoseconds else { return 0 }
        let (whole, rest) = (later.nanoseconds - nanoseconds).quotientAndRemainder(dividingBy: 1_000_000)
        return Int64(whole) + (rest > 0 ? 1 : 0)
    }
}
