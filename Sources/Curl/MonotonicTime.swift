#if canImport(Glibc)
import Glibc
#endif

/// A time in nanoseconds on the monotonic clock, which is never set: for deadlines and stalls.
package struct MonotonicTime: Comparable, Sendable {
    package let nanoseconds: UInt64

    package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    package static func now() -> MonotonicTime {
        var time = timespec()
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails only for an unknown clock
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// The clock's time in whole milliseconds.
    package var milliseconds: Int64 { Int64(nanoseconds / 1_000_000) }

    /// Returns the processor time that the calling thread has used.
    package static func ofThread() -> MonotonicTime {
        var time = timespec()
        _ = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)  // fails only for an unknown clock
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Returns a later time, limited to the end of the clock's range.
    package func advanced(milliseconds: Int64) -> MonotonicTime {
        let (distance, isTooFar) = UInt64(max(0, milliseconds)).multipliedReportingOverflow(by: 1_000_000)
        let (sum, isBeyond) = nanoseconds.addingReportingOverflow(distance)
        return MonotonicTime(nanoseconds: isTooFar || isBeyond ? .max : sum)
    }

    /// Returns the milliseconds since `earlier`; 0 if that is later than this time.
    package func milliseconds(since earlier: MonotonicTime) -> Int64 {
        nanoseconds > earlier.nanoseconds ? Int64((nanoseconds - earlier.nanoseconds) / 1_000_000) : 0
    }

    /// Returns the milliseconds until `later`, rounded up; 0 if that has passed. This is the duration to wait.
    package func milliseconds(until later: MonotonicTime) -> Int64 {
        guard later.nanoseconds > nanoseconds else { return 0 }
        let (whole, rest) = (later.nanoseconds - nanoseconds).quotientAndRemainder(dividingBy: 1_000_000)
        return Int64(whole) + (rest > 0 ? 1 : 0)
    }
}
