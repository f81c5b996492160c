import Glibc

/// The local time zone of the machine.
public enum LocalClock {
    /// Returns the offset of local time from UTC at a moment, in seconds. Positive is ahead of UTC; 0 where it cannot
    /// be determined.
    public static func utcOffset(at moment: Milliseconds) -> Int {
        var parts = tm()
        var seconds = time_t(moment / 1_000)
        return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
    }
}
