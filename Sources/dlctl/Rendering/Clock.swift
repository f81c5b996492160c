import Glibc
import TaskModel

/// The wall clock and conversions to local time.
enum Clock {
    static func now() -> Milliseconds {
        var time = timespec()
        _ = clock_gettime(CLOCK_REALTIME, &time)  // fails only for an unknown clock
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Returns `22:00` for a moment within a day from now, `tomorrow 02:00` if its date is another one, and otherwise
    /// `2026-03-01 22:00`, in local time; with seconds unless the minute is whole.
    static func brief(_ moment: Milliseconds, now: Milliseconds) -> String {
        // Round up to the whole second: when a second begins, a moment within it is still to come.
        var text = local(moment.addingClamped(999) / 1_000 * 1_000)[...]
        if text.hasSuffix(":00") { text = text.dropLast(3) }
        guard (now..<now + 86_400_000).contains(moment) else { return String(text) }
        let time = text.drop { $0 != " " }.dropFirst()
        return (text.hasPrefix(local(now).prefix { $0 != " " }) ? "" : "tomorrow ") + time
    }

    /// Returns local time as `2026-03-01 14:05:09`.
    static func local(_ moment: Milliseconds) -> String {
        var seconds = time_t(moment / 1000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return "\(moment)" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    }
}
