import Testing

@testable import TaskModel

@Suite("The schedule")
struct ScheduleTests {
    private static let hour: Milliseconds = 3_600_000
    private static let day = 24 * hour
    /// Monday, 2026-11-23, midnight UTC.
    private static let monday: Milliseconds = 1_795_392_000_000

    private static func utc(_: Milliseconds) -> Int { 0 }

    /// Returns the offset of Berlin: one hour ahead of UTC in winter and two in summer; the clocks change on 2026-03-29
    /// and 2026-10-25 at 01:00 UTC.
    private static func berlin(_ moment: Milliseconds) -> Int {
        (1_774_746_000_000..<1_792_890_000_000).contains(moment) ? 7_200 : 3_600
    }

    private static let office = ScheduleWindow(days: Set(0..<5), from: 540, to: 1_080, downloadRate: 7)

    @Test(
        "a window holds from its first minute to before its last, on its days",
        arguments: [
            (0, 9, true), (0, 8.99, false), (0, 17.99, true), (0, 18, false), (4, 12, true), (5, 12, false),
            (6, 12, false), (7, 9, true), (-1, 12, false), (-3, 12, true),
        ] as [(Int64, Double, Bool)])
    func window(day: Int64, hours: Double, isIn: Bool) {
        let moment = Self.monday + day * Self.day + Milliseconds(hours * Double(Self.hour))
        let window = Schedule([Self.office]).window(at: moment, utcOffset: Self.utc)
        #expect(window == (isIn ? Self.office : nil))
    }

    @Test(
        "a window over midnight belongs to the day that it begins on",
        arguments: [(0, 21.9, false), (0, 22, true), (1, 5.9, true), (1, 6, false), (0, 5, false), (2, 3, false)]
            as [(Int64, Double, Bool)])
    func overMidnight(day: Int64, hours: Double, isIn: Bool) {
        let schedule = Schedule([ScheduleWindow(days: [0], from: 1_320, to: 360, pauses: true)])
        let moment = Self.monday + day * Self.day + Milliseconds(hours * Double(Self.hour))
        #expect((schedule.window(at: moment, utcOffset: Self.utc) != nil) == isIn)
    }

    @Test("of windows that overlap the first counts")
    func overlap() {
        let all = ScheduleWindow(downloadRate: 1)
        let noon = Self.monday + 12 * Self.hour
        #expect(Schedule([Self.office, all]).window(at: noon, utcOffset: Self.utc) == Self.office)
        #expect(Schedule([all, Self.office]).window(at: noon, utcOffset: Self.utc) == all)
        #expect(Schedule().window(at: noon, utcOffset: Self.utc) == nil)
    }

    @Test("the next change is told to the millisecond; a schedule that never changes has none")
    func nextChange() {
        let schedule = Schedule([Self.office])
        func next(_ moment: Milliseconds) -> Milliseconds? { schedule.nextChange(after: moment, utcOffset: Self.utc) }
        #expect(next(Self.monday) == Self.monday + 9 * Self.hour)
        #expect(next(Self.monday + 9 * Self.hour - 1) == Self.monday + 9 * Self.hour)
        #expect(next(Self.monday + 9 * Self.hour) == Self.monday + 18 * Self.hour)
        // Friday evening to Monday morning.
        #expect(next(Self.monday + 4 * Self.day + 18 * Self.hour) == Self.monday + 7 * Self.day + 9 * Self.hour)
        #expect(Schedule().nextChange(after: Self.monday, utcOffset: Self.utc) == nil)
        let always = Schedule([ScheduleWindow(pauses: true)])
        #expect(always.nextChange(after: Self.monday, utcOffset: Self.utc) == nil)
    }

    @Test("windows go by what clocks show, also on the days when clocks are set")
    func daylightSaving() {
        let schedule = Schedule([ScheduleWindow(from: 540, to: 1_080)])
        // Sunday, 2026-03-29, midnight in standard time, and 2026-10-25 in daylight saving time.
        let (spring, autumn): (Milliseconds, Milliseconds) = (1_774_738_800_000, 1_792_879_200_000)
        #expect(schedule.nextChange(after: spring, utcOffset: Self.berlin) == spring + 8 * Self.hour)
        #expect(schedule.nextChange(after: autumn, utcOffset: Self.berlin) == autumn + 10 * Self.hour)
    }

    @Test("an hour that is left out is in no window, one that comes twice is in its window both times")
    func shiftedHours() {
        let schedule = Schedule([ScheduleWindow(from: 120, to: 180)])
        let (spring, autumn): (Milliseconds, Milliseconds) = (1_774_738_800_000, 1_792_879_200_000)
        // 02:00 becomes 03:00: the window of that night is skipped.
        #expect(schedule.nextChange(after: spring, utcOffset: Self.berlin) == spring + 25 * Self.hour)
        // 03:00 becomes 02:00 again.
        let begin = autumn + 2 * Self.hour
        #expect(schedule.nextChange(after: autumn, utcOffset: Self.berlin) == begin)
        #expect(schedule.nextChange(after: begin, utcOffset: Self.berlin) == begin + 2 * Self.hour)
        // A window that would begin within the skipped hour begins after it.
        let half = Schedule([ScheduleWindow(from: 150, to: 240)])
        #expect(half.nextChange(after: spring, utcOffset: Self.berlin) == spring + 2 * Self.hour)
    }

    @Test("minute by minute over the weeks around both shifts, the next change is where the window changes")
    func everyMinute() {
        let schedule = Schedule([
            ScheduleWindow(days: [5, 6], from: 1_410, to: 150, pauses: true), ScheduleWindow(from: 90, to: 165),
            Self.office,
        ])
        for start: Milliseconds in [1_774_500_000_000, 1_792_600_000_000] {
            let start = start - start % 60_000
            var next = schedule.nextChange(after: start, utcOffset: Self.berlin)
            var window = schedule.window(at: start, utcOffset: Self.berlin)
            for minute in 1...(7 * 1_440) {
                let moment = start + Milliseconds(minute) * 60_000
                let now = schedule.window(at: moment, utcOffset: Self.berlin)
                #expect((now != window) == (moment == next), "\(moment)")
                if now != window { next = schedule.nextChange(after: moment, utcOffset: Self.berlin) }
                window = now
            }
        }
    }

    @Test(
        "days are read as people write them",
        arguments: [
            ("mon-fri", [0, 1, 2, 3, 4]), ("sat,sun", [5, 6]), ("Fri-Mon", [4, 5, 6, 0]), ("wednesday", [2]),
            ("mon, wed", [0, 2]), ("sun-sat", [0, 1, 2, 3, 4, 5, 6]), ("tue-tue", [1]), ("", nil), ("mo", nil),
            ("mon-", nil), ("mon-tue-wed", nil), ("mond", nil), ("mon,,tue", nil),
        ] as [(String, Set<Int>?)])
    func days(text: String, days: Set<Int>?) {
        #expect(Weekdays.parse(text) == days)
    }

    @Test(
        "times of day are read",
        arguments: [
            ("09:00", 540), ("9:30", 570), ("00:00", 0), ("24:00", 1_440), ("24:01", nil), ("09:60", nil), ("9", nil),
            ("09:0", nil), ("-1:00", nil), ("", nil), ("09:00:00", nil),
        ] as [(String, Int?)])
    func times(text: String, minutes: Int?) {
        #expect(TimeOfDay.parse(text) == minutes)
    }
}

@Suite("Windows in words") struct ScheduleTextTests {
    @Test("days are written as they are read")
    func days() {
        for days in [[0, 1, 2, 3, 4], [5, 6], [0, 2], [6], [0, 1, 2, 3, 4, 5, 6], [0, 1, 4, 5, 6]] {
            #expect(Weekdays.parse(Weekdays.text(Set(days))) == Set(days))
        }
        #expect(Weekdays.text([0, 1, 2, 3, 4]) == "mon-fri")
        #expect(Weekdays.text([5, 6]) == "sat,sun")
    }

    @Test("times of day are written as they are read", arguments: [0, 9 * 60, 18 * 60 + 5, 1_440])
    func times(minutes: Int) {
        #expect(TimeOfDay.parse(TimeOfDay.text(minutes)) == minutes)
    }
}
