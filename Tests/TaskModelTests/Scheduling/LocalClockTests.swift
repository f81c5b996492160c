import TaskModel
import Testing

@Suite("Local time")
struct LocalClockTests {
    @Test(
        "a moment is written as a date and a time",
        arguments: [
            (0, 0, "1970-01-01 00:00:00"), (951_782_399_999, 0, "2000-02-28 23:59:59"),
            (951_782_400_000, 0, "2000-02-29 00:00:00"), (1_795_657_516_000, 3_600, "2026-11-26 02:45:16"),
            (-1_000, 0, "1969-12-31 23:59:59"), (0, -1, "1969-12-31 23:59:59"),
            (4_107_542_400_000, 0, "2100-03-01 00:00:00"),
        ] as [(Milliseconds, Int, String)])
    func text(moment: Milliseconds, offset: Int, expected: String) {
        #expect(LocalClock.text(moment, utcOffset: offset) == expected)
    }

    @Test("a moment beyond the calendar is the nearest in it")
    func bounds() {
        #expect(LocalClock.text(.max, utcOffset: .max) == "9999-12-31 23:59:59")
        #expect(LocalClock.text(.min, utcOffset: .min) == "0001-01-01 00:00:00")
    }
}
