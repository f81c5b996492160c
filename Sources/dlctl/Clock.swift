import Glibc
import TaskModel

/// The wall clock and the place's time.
enum Clock {
    static func now() -> Milliseconds {
        var time = timespec()
        _ = clock_gettime(CLOCK_REALTIME, &time)  // fails for an unknown clock alone
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// What `--start-at` says.
    static func startAt(_ text: String) throws(Failure) -> Milliseconds {
        guard let moment = PointInTime.parse(text, now: now(), utcOffset: LocalClock.utcOffset(at:)) else {
            throw .usage(
                "--start-at: '\(text)' is not a time; write 2030-01-31T22:00, 22:00 or +2h", field: "--start-at")
        }
        return moment
    }

    /// What `--since` and `--until` say: a moment, or a span before now.
    static func past(_ text: String, option: String) throws(Failure) -> Milliseconds {
        let now = now()
        if let span = TimeSpan.parse(text) { return max(0, now - span) }
        guard !text.hasPrefix("+"), let moment = PointInTime.parse(text, now: now, utcOffset: LocalClock.utcOffset(at:))
        else {
            throw .usage(
                "\(option): '\(text)' is not a time; write 2026-01-31, 2026-01-31T22:00, 22:00 or 2h", field: option)
        }
        // An hour alone is the last one that clocks showed.
        return text.utf8.count == 5 && moment > now ? moment - 86_400_000 : moment
    }

    /// `22:00` within a day from now, otherwise `2026-03-01 22:00`, local time.
    static func brief(_ moment: Milliseconds, now: Milliseconds) -> String {
        // A window ends with a minute, and a moment within one is not over before it is.
        let text = local((moment + 59_999) / 60_000 * 60_000).dropLast(3)
        return String((now..<now + 86_400_000).contains(moment) ? text.suffix(5) : text)
    }

    /// `2026-03-01 14:05:09`, local time.
    static func local(_ moment: Milliseconds) -> String {
        var seconds = time_t(moment / 1000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return "\(moment)" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    }
}
