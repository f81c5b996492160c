import TaskModel
import Testing

@Suite("Moments")
struct PointInTimeTests {
    /// 2024-02-28T23:30:15Z, a day before a leap day.
    private let now: Milliseconds = 1_709_163_015_000

    @Test(
        "ISO 8601 with a zone is a moment",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00Z", 0), ("2000-02-29T12:34:56Z", 951_827_696_000),
            ("2024-03-01T00:00:00Z", 1_709_251_200_000), ("2030-01-31T22:00:00Z", 1_896_127_200_000),
            ("2030-01-31T22:00:00+01:00", 1_896_123_600_000), ("2030-01-31T22:00:00-0530", 1_896_147_000_000),
            ("2030-01-31 22:00:00+01", 1_896_123_600_000), ("2030-01-31t22:00:00z", 1_896_127_200_000),
            ("2030-01-31T22:00:00.25Z", 1_896_127_200_250), ("2030-01-31T22:00:00.1239Z", 1_896_127_200_123),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000), ("1969-12-31T23:00:00-02:00", 3_600_000),
        ] as [(String, Milliseconds)])
    func iso8601(text: String, expected: Milliseconds) {
        #expect(PointInTime.parse(text, now: now, utcOffsetSeconds: 7_200) == expected)
    }

    @Test(
        "a date and time without a zone are local, and a date alone is its midnight",
        arguments: [
            ("2030-01-31T22:00:00", 0, 1_896_127_200_000), ("2030-01-31T22:00:00", 3_600, 1_896_123_600_000),
            ("2030-01-31T22:00", -19_800, 1_896_147_000_000), ("2030-01-31 22:00:00.25", 0, 1_896_127_200_250),
            ("2030-01-31", 0, 1_896_048_000_000), ("2030-01-31", 3_600, 1_896_044_400_000),
            ("2030-01-31", -28_800, 1_896_076_800_000), ("1970-01-01", 0, 0),
        ] as [(String, Int, Milliseconds)])
    func local(text: String, offset: Int, expected: Milliseconds) {
        #expect(PointInTime.parse(text, now: now, utcOffsetSeconds: offset) == expected)
    }

    @Test("local time is that of the day in question, where clocks change before it")
    func summerTime() {
        // Daylight saving time from 2024-03-31T01:00:00Z on.
        let offset = { (moment: Milliseconds) in moment < 1_711_846_800_000 ? 3_600 : 7_200 }
        #expect(PointInTime.parse("2024-03-30T12:00", now: now, utcOffset: offset) == 1_711_796_400_000)
        #expect(PointInTime.parse("2024-04-01T12:00", now: now, utcOffset: offset) == 1_711_965_600_000)
        #expect(PointInTime.parse("2024-04-01T12:00Z", now: now, utcOffset: offset) == 1_711_972_800_000)
        #expect(PointInTime.parse("soon", now: now, utcOffset: offset) == nil)
    }

    /// Central European time in 2024, with daylight saving time from 31 March to 27 October.
    private func central(_ moment: Milliseconds) -> Int {
        (1_711_846_800_000..<1_729_990_800_000).contains(moment) ? 7_200 : 3_600
    }

    @Test(
        "a time that clocks skip is after the change, and one that they show twice is the first of the two",
        arguments: [
            ("2024-03-31T01:59", 1_711_846_740_000), ("2024-03-31T02:00", 1_711_846_800_000),
            ("2024-03-31T02:30", 1_711_848_600_000), ("2024-03-31T03:00", 1_711_846_800_000),
            ("2024-10-27T01:59", 1_729_987_140_000), ("2024-10-27T02:00", 1_729_987_200_000),
            ("2024-10-27T02:30", 1_729_989_000_000), ("2024-10-27T03:00", 1_729_994_400_000),
            ("2024-10-27T02:30+01:00", 1_729_992_600_000),
        ] as [(String, Milliseconds)])
    func changedClocks(text: String, expected: Milliseconds) {
        #expect(PointInTime.parse(text, now: now, utcOffset: central) == expected)
    }

    @Test("an hour alone follows the same rules, and is never in the past")
    func changedClocksFromNow() {
        func next(_ text: String, after now: Milliseconds) -> Milliseconds? {
            PointInTime.parse(text, now: now, utcOffset: central)
        }
        // From noon of the day before.
        #expect(next("02:30", after: 1_711_796_400_000) == 1_711_848_600_000)
        #expect(next("02:30", after: 1_729_936_800_000) == 1_729_989_000_000)
        #expect(next("04:00", after: 1_729_936_800_000) == 1_729_998_000_000)
        // After the first half past two, clocks show it once more.
        #expect(next("02:30", after: 1_729_989_000_000) == 1_729_992_600_000)
        #expect(next("02:30", after: 1_729_992_600_000) == 1_730_079_000_000)
    }

    @Test("local clocks that skip midnight have a first moment of that day", .timeLimit(.minutes(1)))
    func skippedMidnight() {
        // Beirut in 2024: clocks were set to 01:00 at midnight of 31 March.
        let offset = { (moment: Milliseconds) in moment < 1_711_836_000_000 ? 7_200 : 10_800 }
        #expect(PointInTime.parse("2024-03-31", now: now, utcOffset: offset) == 1_711_836_000_000)
    }

    @Test(
        "an hour is the next moment when clocks show it",
        arguments: [
            ("23:31", 0, 45_000), ("23:30", 0, 86_385_000), ("00:00", 0, 1_785_000), ("23:29", 0, 86_325_000),
            ("01:31", 7_200, 45_000), ("00:31", 3_600, 45_000), ("15:31", -28_800, 45_000), ("05:01", 19_800, 45_000),
        ] as [(String, Int, Milliseconds)])
    func hour(text: String, offset: Int, later: Milliseconds) {
        #expect(PointInTime.parse(text, now: now, utcOffsetSeconds: offset) == now + later)
    }

    @Test("an hour that is this very moment is tomorrow's")
    func thisMoment() {
        #expect(PointInTime.parse("00:00", now: 0, utcOffsetSeconds: 0) == 86_400_000)
    }

    @Test("a span after a plus sign counts from now")
    func span() {
        #expect(PointInTime.parse("+2h", now: now, utcOffsetSeconds: 60) == now + 7_200_000)
        #expect(PointInTime.parse("+1.5s", now: now, utcOffsetSeconds: 0) == now + 1_500)
    }

    @Test(
        "what is no moment is none",
        arguments: [
            "", " ", "soon", "24:00", "12:60", "1:30", "12:3", "12:30 ", "-12:30", "2h", "+", "+2", "+-2h", "++2h",
            "2030-01-31T", "2030-01-31T22", "2030-01", "2030-02-29", "2030-01-31 ", "2030-01-31Z",
            "2030-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2030-13-01T00:00Z",
            "2030-00-01T00:00Z", "2030-01-00T00:00Z", "2030-04-31T00:00Z", "2030-01-31T24:00:00Z",
            "2030-01-31T22:00:60Z", "2030-01-31T22:00:00.Z", "2030-01-31T22:00:00Zx", "2030-01-31T22:00:00+1",
            "2030-01-31T22:00:00+24:00", "1969-12-31T23:59:59Z", "0000-01-01T00:00Z", "9999-12-31T23:59:59-01:00",
            "+900000000000s", "２２:00", "12:30\n",
        ])
    func none(text: String) {
        #expect(PointInTime.parse(text, now: now, utcOffsetSeconds: 0) == nil)
    }

    @Test(
        "only an hour alone and a span count from the moment of reading",
        arguments: [
            ("+2h", true), ("22:00", true), ("2030-01-31T22:00", false), ("2030-01-31", false), ("2030:", false),
        ])
    func countsFromNow(text: String, expected: Bool) {
        #expect(PointInTime.countsFromNow(text) == expected)
    }
}
