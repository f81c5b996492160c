import TaskModel

extension Clock {
    /// Parses the value of `--start-at`.
    static func startAt(_ text: String) throws(Failure) -> Milliseconds {
        guard let moment = PointInTime.parse(text, now: now(), utcOffset: LocalClock.utcOffset(at:)) else {
            throw .usage(
                "--start-at: \"\(text)\" is not a time; write 2030-01-31T22:00, 22:00 or +2h", field: "--start-at")
        }
        return moment
    }

    /// Parses the value of `--since` or `--until`: a point in time, or a time span before now.
    static func past(_ text: String, option: String) throws(Failure) -> Milliseconds {
        let now = now()
        if let span = TimeSpan.parse(text) { return max(0, now - span) }
        guard !text.hasPrefix("+"), let moment = PointInTime.parse(text, now: now, utcOffset: LocalClock.utcOffset(at:))
        else {
            throw .usage(
                "\(option): \"\(text)\" is not a time; write 2026-01-31, 2026-01-31T22:00, 22:00 or 2h", field: option)
        }
        // A time of day without a date means its most recent occurrence.
        return text.utf8.count == 5 && moment > now ? moment - 86_400_000 : moment
    }
}
