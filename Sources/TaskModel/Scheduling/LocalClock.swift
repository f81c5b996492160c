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

    /// Returns local time as `2026-03-01 14:05:09`.
    ///
    /// - Parameters:
    ///   - moment: the time; one outside the years 1 to 9999 is replaced by the nearest in them.
    ///   - utcOffset: the offset of local time from UTC, in seconds.
    package static func text(_ moment: Milliseconds, utcOffset: Int) -> String {
        let shifted = moment.addingClamped(Milliseconds(utcOffset).multipliedClamped(by: 1_000))
        let seconds = min(max(shifted, -62_135_596_800_000), 253_402_300_799_000) / 1_000
        let second = Int((seconds % 86_400 + 86_400) % 86_400)
        // The inverse of `PointInTime.days(year:month:day:)`. Years begin in March, and eras have 400 years.
        let days = Int((seconds - Int64(second)) / 86_400) + 719_468
        let era = days / 146_097
        let dayOfEra = days % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let date = [digits(year, 4), digits(month, 2), digits(day, 2)].joined(separator: "-")
        let time = [second / 3_600, second / 60 % 60, second % 60].map { digits($0, 2) }.joined(separator: ":")
        return "\(date) \(time)"
    }
}
