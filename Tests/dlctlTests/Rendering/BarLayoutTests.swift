import TaskModel
import Testing

@testable import dlctl

@Suite struct BarLayoutTests {
    private let plain = Terminal.Style(colour: false, unicode: true)
    private func layout(_ width: Int) -> BarLayout { BarLayout(width: width, style: plain) }

    @Test("a bar grows by eighths of a column")
    func eighths() {
        let bars = BarLayout(width: 80, style: plain)
        #expect(bars.bar(fraction: 0, width: 4) == "░░░░")
        #expect(bars.bar(fraction: 1.0 / 32, width: 4) == "▏░░░")
        #expect(bars.bar(fraction: 0.5, width: 4) == "██░░")
        #expect(bars.bar(fraction: 0.6, width: 4) == "██▍░")
        #expect(bars.bar(fraction: 1, width: 4) == "████")
        #expect(bars.bar(fraction: nil, width: 4) == "░░░░")
    }

    @Test("without UTF-8 a bar is of number signs")
    func ascii() {
        let bars = BarLayout(width: 80, style: Terminal.Style(colour: false, unicode: false))
        #expect(bars.bar(fraction: 0.5, width: 6) == "[##  ]")
    }

    @Test("an active task shows percent, amount, rate and time left")
    func active() {
        var task = sampleTask(done: 128 << 20, of: 512 << 20)
        task.rate = 12 << 20
        task.eta = 32
        let line = layout(120).line(task, now: 0)
        for part in ["a.iso", "25%", "128 MiB/512 MiB", "12.0 MiB/s", "0:32"] { #expect(line.contains(part)) }
    }

    @Test("no line is wider than the terminal, whatever the name", arguments: [20, 39, 40, 61, 80, 200])
    func fits(width: Int) {
        var task = sampleTask(name: String(repeating: "長い名前", count: 20), done: 1 << 29, of: 1 << 30)
        task.rate = 999 << 20
        task.eta = 86_399
        for state in [TaskState.active, .queued, .waiting, .paused] {
            task.state = state
            #expect(DisplayWidth.of(layout(width).line(task, now: 0)) <= width)
        }
        task.state = .completed
        let total = BarLayout.Total(
            tasks: 99999, completed: 5, unsuccessful: 5, bytes: 1 << 40, bytesTotal: 1 << 41, rate: 1 << 30)
        #expect(DisplayWidth.of(layout(width).total(total)) <= width)
        #expect(DisplayWidth.of(layout(width).others(99999)) <= width)
    }

    @Test("the lines of several tasks begin with their ids, aligned to the right, and a long name keeps its end")
    func ids() {
        var bars = layout(80)
        bars.idWidth = 4
        let task = sampleTask(12, name: String(repeating: "long-", count: 20) + "end.iso", done: 1, of: 4)
        let line = bars.line(task, now: 0)
        #expect(line.hasPrefix("  12  long-"))
        #expect(line.contains("…") && line.contains("end.iso") && line.contains("25%"))
        #expect(bars.bare(TaskID(7)) == "   7  task 7")
    }

    @Test("the totals are bytes, rate, time left and how many are done, at 80 columns too")
    func totals() {
        var total = BarLayout.Total(
            tasks: 12, completed: 2, unsuccessful: 1, bytes: 120 << 20, bytesTotal: 1 << 30, rate: 4 << 20)
        let line = layout(79).total(total)
        #expect(line.hasSuffix("3 of 12 done, 1 not completed  120 MiB of 1.0 GiB  4.0 MiB/s  3:46 left"))
        total.bytesTotal = nil
        total.rate = 0
        #expect(layout(120).total(total).hasSuffix("120 MiB  0 B/s  -:-- left"))
    }

    @Test("a file of no known length has no percentage")
    func unknownLength() {
        let line = layout(100).line(sampleTask(done: 2048), now: 0)
        #expect(!line.contains("%"))
        #expect(line.contains("2.0 KiB"))
    }

    @Test("an empty file is a full bar, not a division by zero")
    func emptyFile() {
        #expect(layout(100).line(sampleTask(done: 0, of: 0), now: 0).contains("██"))
    }

    @Test("a task that waits says for what, and for how long")
    func waiting() {
        var task = sampleTask(7, .waiting, reason: .retry)
        (task.notBefore, task.attempts) = (12_400, 3)
        task.error = TaskFailure(code: .dns, message: "the name example.org does not resolve")
        #expect(layout(80).line(task, now: 10_000).contains("name does not resolve, 4th try in 3 s"))
    }

    @Test("the last line of a completed task tells size, time and average rate")
    func completed() {
        var task = sampleTask(7, .completed, done: 100 << 20, of: 100 << 20)
        task.startedAt = 1000
        task.finishedAt = 11_000
        task.verified = true
        let words = "100 MiB in 10 s, 10.0 MiB/s, checksum verified"
        #expect(layout(80).ending(task) == "✓ 7  a.iso  " + words)
        task.path = "/d/a.iso"
        #expect(layout(80).ending(task) == "✓ 7  /d/a.iso  " + words)
        task.reason = .unchanged
        #expect(layout(80).ending(task) == "✓ 7  /d/a.iso  100 MiB, unchanged, checksum verified")
        #expect(Describe.state(task, now: 0) == "completed, unchanged")
    }

    @Test("a start time has its seconds, unless the minute is whole")
    func seconds() {
        let day = Clock.local(86_400_000 * 20_000).prefix(10)
        func brief(_ moment: Milliseconds) -> String { Clock.brief(86_400_000 * 20_000 + moment, now: moment) }
        #expect(brief(0).hasPrefix("\(day) ") && brief(0).utf8.count == 16)
        #expect(brief(2_001).hasSuffix(":00:03"), "a moment within a second is still to come")
        #expect(Clock.brief(60_000, now: 0).utf8.count == 5 && Clock.brief(63_000, now: 0).hasSuffix(":03"))
    }

    @Test("the last line of a failed task is not cut off")
    func failed() {
        let error = TaskFailure(code: .http(404), message: String(repeating: "long ", count: 40), httpStatus: 404)
        let line = layout(40).ending(sampleTask(7, .failed, error: error))
        #expect(line.hasPrefix("✗ a.iso  task 7 failed: http-404: long"))
        #expect(line.count > 200)
    }

    @Test("colour is an escape sequence that ends, and only where it is wanted")
    func colour() {
        let line = BarLayout(width: 80, style: Terminal.Style(colour: true, unicode: true)).bar(fraction: 0.5, width: 2)
        #expect(line == "\u{1B}[36m█\u{1B}[0m\u{1B}[2m░\u{1B}[0m")
    }
}
