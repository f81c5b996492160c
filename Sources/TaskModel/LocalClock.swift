import Glibc

/// The clocks on the walls of the place where the machine stands.
public enum LocalClock {
    /// Seconds that they are ahead of UTC at a moment.
    public static func utcOffset(at moment: Milliseconds) -> Int {
        var parts = tm()
        var seconds = time_t(moment / 1_000)
        return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
    }
}
