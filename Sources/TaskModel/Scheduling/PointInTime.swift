/// A parser for moments written by users: ISO 8601 with or without a time zone, `HH:MM`, or `+2h`.
public enum PointInTime {
    /// Parses a moment.
    ///
    /// - Parameters:
    ///   - text: One of these forms:
    ///     `2030-01-31T22:00:00Z` (RFC 3339, section 5.6), where seconds and their fraction may be absent, a space may
    ///     replace the `T`, and an offset such as `+01:00` may replace the `Z`;
    ///     the same without a zone for local time;
    ///     `2030-01-31` for local midnight at the start of that day;
    ///     `22:00` for the next moment at which local clocks show that time;
    ///     a plus sign and a ``TimeSpan`` for a moment relative to `now`; `now`.
    ///   - now: the current time, in milliseconds since 1970.
    ///   - utcOffset: returns the offset of local time from UTC at a moment, in seconds, positive ahead of UTC.
    /// - Returns: milliseconds since 1970, or `nil` where the text is not a moment from 1970 to 9999. A local time that
    ///   clocks show twice is the first of the two moments. One that they skip is as long after the change as it would
    ///   be without the change.
    public static func parse(
        _ text: String, now: Milliseconds, utcOffset: (Milliseconds) -> Int
    ) -> Milliseconds? {
        var scanner = Scanner(rest: Array(text.utf8)[...])
        let moment: Milliseconds?
        if text == "now" {
            moment = now
        } else if scanner.take("+") {
            moment = TimeSpan.parse(String(decoding: scanner.rest, as: UTF8.self)).map { now + $0 }
        } else if let (hour, minute) = scanner.hourAndMinute(), scanner.rest.isEmpty {
            moment = next(hour: hour, minute: minute, now: now, utcOffset)
        } else {
            scanner = Scanner(rest: Array(text.utf8)[...])
            moment = scanner.dateAndTime().flatMap { clock, zone in
                zone.map { clock - $0 } ?? moments(showing: clock, utcOffset).first
            }
        }
        return moment.flatMap { (0..<253_402_300_800_000).contains($0) ? $0 : nil }
    }

    /// Parses a moment like ``parse(_:now:utcOffset:)`` with an offset that never changes.
    ///
    /// - Parameter utcOffsetSeconds: the offset of local time from UTC, in seconds, positive ahead of UTC.
    public static func parse(_ text: String, now: Milliseconds, utcOffsetSeconds: Int) -> Milliseconds? {
        parse(text, now: now) { _ in utcOffsetSeconds }
    }

    /// Whether the text is relative to the time of parsing: `22:00`, `+2h`, `now`.
    public static func countsFromNow(_ text: String) -> Bool {
        text == "now" || text.hasPrefix("+")
            || (text.utf8.count == 5 && text.utf8.dropFirst(2).first == UInt8(ascii: ":"))
    }

    private static let day: Milliseconds = 86_400_000

    /// Returns the moments at which local clocks show a time, the first one first: two where clocks are set back. Where
    /// they skip the time, it is read with the offset before the change.
    ///
    /// - Parameter clock: the milliseconds from 1970-01-01T00:00 to the time on the clock.
    private static func moments(
        showing clock: Milliseconds, _ utcOffset: (Milliseconds) -> Int
    ) -> [Milliseconds] {
        // No zone changes its offset twice within two days.
        let offsets = [-day, day].map { Milliseconds(utcOffset(clock + $0)) * 1_000 }
        let candidates = offsets.map { clock - $0 }
        let shown = zip(candidates, offsets).filter { Milliseconds(utcOffset($0)) * 1_000 == $1 }.map(\.0)
        return shown.isEmpty ? Array(candidates.prefix(1)) : shown.sorted()
    }

    /// Returns the next moment at which local clocks show the time. It is always later than `now`, so never in the
    /// current minute.
    private static func next(
        hour: Int, minute: Int, now: Milliseconds, _ utcOffset: (Milliseconds) -> Int
    ) -> Milliseconds? {
        let local = now + Milliseconds(utcOffset(now)) * 1_000
        let midnight = local - ((local % day) + day) % day
        let time = midnight + Milliseconds(hour * 60 + minute) * 60_000
        // Where clocks are set back over midnight, a moment of the day before may follow.
        return [time - day, time, time + day].flatMap { moments(showing: $0, utcOffset) }.filter { $0 > now }.min()
    }

    /// Returns the number of days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that the
    /// leap day is the last day of a year.
    static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        return 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
    }

    private static func length(ofMonth month: Int, year: Int) -> Int {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private struct Scanner {
        var rest: ArraySlice<UInt8>

        mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func number(digits: Int, in range: ClosedRange<Int>) -> Int? {
            let text = rest.prefix(digits)
            guard text.count == digits, text.allSatisfy(\.isDigit) else { return nil }
            rest = rest.dropFirst(digits)
            let value = text.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            return range.contains(value) ? value : nil
        }

        mutating func hourAndMinute() -> (hour: Int, minute: Int)? {
            guard let hour = number(digits: 2, in: 0...23), take(":"), let minute = number(digits: 2, in: 0...59)
            else { return nil }
            return (hour, minute)
        }

        /// Parses a date, optionally with a time and a zone.
        ///
        /// - Returns: the milliseconds from 1970-01-01T00:00 to the time on the clock, and the zone's offset from UTC in
        ///   milliseconds; `nil` where the text names no zone.
        mutating func dateAndTime() -> (clock: Milliseconds, zone: Milliseconds?)? {
            guard let year = number(digits: 4, in: 1969...9999), take("-"),
                let month = number(digits: 2, in: 1...12), take("-"),
                let day = number(digits: 2, in: 1...PointInTime.length(ofMonth: month, year: year))
            else { return nil }
            let midnight = Milliseconds(PointInTime.days(year: year, month: month, day: day)) * 86_400_000
            if rest.isEmpty { return (midnight, nil) }
            guard take("T") || take("t") || take(" "), let (hour, minute) = hourAndMinute() else { return nil }
            var milliseconds = 0
            if take(":") {
                guard let second = number(digits: 2, in: 0...59), let fraction = fraction() else { return nil }
                milliseconds = second * 1_000 + fraction
            }
            let moment = midnight + Milliseconds(hour * 60 + minute) * 60_000 + Milliseconds(milliseconds)
            if rest.isEmpty { return (moment, nil) }
            guard let zone = zone(), rest.isEmpty else { return nil }
            return (moment, Milliseconds(zone) * 60_000)
        }

        /// Parses an optional fraction of a second. Returns milliseconds; finer digits are truncated.
        private mutating func fraction() -> Int? {
            guard take(".") else { return 0 }
            let digits = rest.prefix(while: \.isDigit)
            guard !digits.isEmpty else { return nil }
            rest = rest[digits.endIndex...]
            return (0..<3).reduce(0) { value, place in
                let index = digits.startIndex + place
                return value * 10 + (index < digits.endIndex ? Int(digits[index] - UInt8(ascii: "0")) : 0)
            }
        }

        /// Parses a zone. Returns its offset from UTC in minutes, positive ahead of UTC.
        private mutating func zone() -> Int? {
            if take("Z") || take("z") { return 0 }
            let sign: Int
            if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
            guard let hours = number(digits: 2, in: 0...23) else { return nil }
            if rest.isEmpty { return sign * hours * 60 }
            _ = take(":")
            guard let minutes = number(digits: 2, in: 0...59) else { return nil }
            return sign * (hours * 60 + minutes)
        }
    }
}
