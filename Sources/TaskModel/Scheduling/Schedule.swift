/// A weekly time window with its own rate limits.
public struct ScheduleWindow: Sendable, Equatable {
    /// The days on which the window begins; 0 is Monday.
    public var days: Set<Int>
    /// The start, in minutes after midnight in local time.
    public var from: Int
    /// The end, in minutes after midnight in local time, at most 1,440. It is on the following day where it is not
    /// later than ``from``.
    public var to: Int
    /// The download limit in bytes per second; `nil` where the limit outside the window applies.
    public var downloadRate: Int64?
    public var uploadRate: Int64?
    /// Whether no task runs during the window.
    public var pauses: Bool

    /// Creates a window. The defaults are every day, the whole day, and no difference from the rules outside the
    /// window.
    public init(
        days: Set<Int> = Set(0..<7), from: Int = 0, to: Int = Self.minutesOfDay, downloadRate: Int64? = nil,
        uploadRate: Int64? = nil, pauses: Bool = false
    ) {
        self.days = days
        self.from = from
        self.to = to
        self.downloadRate = downloadRate
        self.uploadRate = uploadRate
        self.pauses = pauses
    }

    public static let minutesOfDay = 1_440

    /// Whether the window contains a local time.
    ///
    /// - Parameters:
    ///   - day: the day of the week; 0 is Monday.
    ///   - minute: the minutes after midnight.
    func contains(day: Int, minute: Int) -> Bool {
        if to > from { return days.contains(day) && (from..<to).contains(minute) }
        return (days.contains(day) && minute >= from) || (days.contains((day + 6) % 7) && minute < to)
    }
}

/// The time windows of a week. The first window that contains a moment applies. The type has no clock of its own.
///
/// Windows follow local time. An hour that is skipped when clocks are set forward is in no window. An hour that occurs
/// twice is in its window both times.
public struct Schedule: Sendable, Equatable {
    public var windows: [ScheduleWindow]

    public init(_ windows: [ScheduleWindow] = []) { self.windows = windows }

    /// Returns the window that applies at a moment; `nil` where no window does.
    ///
    /// - Parameter utcOffset: Returns the offset of local time from UTC at a moment, in seconds.
    public func window(at moment: Milliseconds, utcOffset: (Milliseconds) -> Int) -> ScheduleWindow? {
        index(at: moment, utcOffset).map { windows[$0] }
    }

    private func index(at moment: Milliseconds, _ utcOffset: (Milliseconds) -> Int) -> Int? {
        if windows.isEmpty { return nil }
        let minutes = Self.floor(moment + Milliseconds(utcOffset(moment)) * 1_000, by: 60_000)
        let days = Self.floor(minutes, by: Milliseconds(ScheduleWindow.minutesOfDay))
        // 1970-01-01 was a Thursday.
        let day = Int(((days + 3) % 7 + 7) % 7)
        let minute = Int(minutes - days * Milliseconds(ScheduleWindow.minutesOfDay))
        return windows.firstIndex { $0.contains(day: day, minute: minute) }
    }

    /// Returns the next moment at which a different window applies, or at which the first one begins or the last one
    /// ends. `nil` where nothing ever changes.
    ///
    /// - Parameter utcOffset: as for ``window(at:utcOffset:)``.
    public func nextChange(after moment: Milliseconds, utcOffset: (Milliseconds) -> Int) -> Milliseconds? {
        let present = index(at: moment, utcOffset)
        return candidates(after: moment, utcOffset).first { index(at: $0, utcOffset) != present }
    }

    /// Returns, in order, each moment at which a window may begin or end within about the next eight days.
    private func candidates(after moment: Milliseconds, _ utcOffset: (Milliseconds) -> Int) -> [Milliseconds] {
        let day: Milliseconds = 86_400_000
        // The UTC offset changes at most once between two adjacent samples, which are one day apart.
        let looks = (0...9).map { moment + Milliseconds($0 - 1) * day }
        var moments: Set<Milliseconds> = []
        var offsets: Set<Int> = []
        for (start, end) in zip(looks, looks.dropFirst()) {
            offsets.formUnion([utcOffset(start), utcOffset(end)])
            if utcOffset(start) != utcOffset(end) { moments.insert(Self.shift(between: start, end, utcOffset)) }
        }
        let minutes = Set(windows.flatMap { [$0.from, $0.to % ScheduleWindow.minutesOfDay, 0] })
        for offset in offsets.map({ Milliseconds($0) * 1_000 }) {
            let today = Self.floor(moment + offset, by: day)
            for number in -1...8 {
                for minute in minutes {
                    moments.insert((today + Milliseconds(number)) * day + Milliseconds(minute) * 60_000 - offset)
                }
            }
        }
        return moments.filter { $0 > moment }.sorted()
    }

    /// Returns the moment at which the UTC offset changes, by binary search.
    private static func shift(
        between start: Milliseconds, _ end: Milliseconds, _ utcOffset: (Milliseconds) -> Int
    ) -> Milliseconds {
        let before = utcOffset(start)
        var (low, high) = (start, end)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if utcOffset(middle) == before { low = middle } else { high = middle }
        }
        return high
    }

    private static func floor(_ value: Milliseconds, by unit: Milliseconds) -> Milliseconds {
        value >= 0 ? value / unit : -((-value + unit - 1) / unit)
    }
}

/// A parser for days of the week: `mon-fri`, `sat,sun`, `fri-mon`.
public enum Weekdays {
    private static let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

    /// Parses a list of days and ranges of days.
    ///
    /// - Returns: the days, from 0 for Monday to 6 for Sunday; `nil` where the text is invalid.
    public static func parse(_ text: String) -> Set<Int>? {
        var days: Set<Int> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map(day)
            guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil else { return nil }
            for number in 0...((last - first + 7) % 7) { days.insert((first + number) % 7) }
        }
        return days.isEmpty ? nil : days
    }

    /// Returns the days in the form that ``parse(_:)`` accepts: `mon-fri`, `sat,sun`.
    public static func text(_ days: Set<Int>) -> String {
        func name(_ day: Int) -> String { String(names[day].prefix(3)) }
        var parts: [String] = []
        var day = 0
        while day < names.count {
            guard days.contains(day) else {
                day += 1
                continue
            }
            var last = day
            while days.contains(last + 1), last + 1 < names.count { last += 1 }
            if last - day > 1 {
                parts.append("\(name(day))-\(name(last))")
            } else {
                parts += (day...last).map(name)
            }
            day = last + 1
        }
        return parts.joined(separator: ",")
    }

    /// Parses a day's full name or its first three letters.
    private static func day(_ text: Substring) -> Int? {
        let word = text.trimmingSpaces().lowercased()
        guard word.utf8.count >= 3 else { return nil }
        return names.firstIndex { $0 == word || (word.utf8.count == 3 && $0.hasPrefix(word)) }
    }
}

extension Substring {
    fileprivate func trimmingSpaces() -> Substring {
        var rest = self
        while rest.first == " " { rest.removeFirst() }
        while rest.last == " " { rest.removeLast() }
        return rest
    }
}

/// A parser for times of day: `09:00`, and `24:00` for the end of a day.
public enum TimeOfDay {
    /// Parses a time of day.
    ///
    /// - Returns: minutes after midnight, at most 1,440; `nil` where the text is invalid.
    public static func parse(_ text: String) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy(\.isDigit) }), let hour = Int(parts[0]), let minute = Int(parts[1]),
            minute < 60
        else { return nil }
        let minutes = hour * 60 + minute
        return minutes <= ScheduleWindow.minutesOfDay ? minutes : nil
    }

    /// Returns minutes after midnight in the form that ``parse(_:)`` accepts.
    public static func text(_ minutes: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(minutes / 60)):\(two(minutes % 60))"
    }
}
