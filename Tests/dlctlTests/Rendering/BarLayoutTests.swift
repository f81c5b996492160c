import TaskModel
import Testing

@testable import dlctl

@Suite struct BarLayoutTests {
    private let plain = Terminal.Style(colour: false, unicode: true)
    private func layout(_ width: Int) -> BarLayout { BarLayout(width: width, style: plain) }

    private func others(_ states: TaskState?...) -> OtherEndings {
        var others = OtherEndings()
        for state in states { others.add(state) }
        return others
    }

    @Test("tasks that did not complete are counted by what happened to them")
    func otherEndings() {
        #expect(others().words == "")
        let all = others(.failed, nil, .cancelled, .failed, .paused)
        #expect(all.words == ", 2 failed, 1 cancelled, 1 paused, 1 removed" && all.count == 5)
    }

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
            tasks: 99999, completed: 5, others: others(.failed), bytes: 1 << 40, bytesTotal: 1 << 41, rate: 1 << 30)
        #expect(DisplayWidth.of(layout(width).total(total)) <= width)
        #expect(DisplayWidth.of(layout(width).others(99999)) <= width)
    }

    @Test("the lines of several tasks begin with their ids, aligned to the right, and a long name keeps its end")
    func ids() {
        var bars = layout(80)
        bars.idWidth = 4
        let task = sampleTask(12, name: String(repeating: "long-", count: 20) + "end.iso", done: 1, of: 4)
        let line = bars.line(task, now: 0)
        #expect(line.hasPrefix("  12  ██") && line.contains(" 25%  "))
        #expect(line.contains("  long-") && line.contains("…") && line.hasSuffix("end.iso"))
        #expect(bars.bare(TaskID(7)) == "   7  task 7")
    }

    @Test("neither a name nor a reason is shortened beside free space, and the names of usual lines are in one column")
    func freeSpace() {
        var waiting = sampleTask(2, .waiting, reason: .retry, name: "b", error: TaskFailure(code: .dns, message: "x"))
        (waiting.notBefore, waiting.attempts) = (7_200_000, 3)
        let long = String(repeating: "long-", count: 11) + "end.iso"
        let running = layout(79).line(sampleTask(3, name: "長い.iso", done: 1, of: 4), now: 0)
        let paused = layout(79).line(sampleTask(4, .paused, reason: .user, name: "c.iso"), now: 0)
        #expect(running.distance(from: running.startIndex, to: running.firstIndex(of: "長") ?? running.endIndex) == 50)
        #expect(paused == "paused" + String(repeating: " ", count: 44) + "c.iso")
        let name = String(repeating: "x", count: 29)
        #expect(layout(79).line(sampleTask(6, name: name, done: 1, of: 4), now: 0).hasSuffix("  " + name))
        #expect(layout(79).line(sampleTask(5, .queued, name: long), now: 0) == "queued           " + long)
        let words = "name does not resolve, 4th try in 2 h 0 min"
        #expect(layout(51).line(waiting, now: 0) == words + "  b")
    }

    @Test("a transfer on which no byte comes says since when, and when it connects again")
    func stall() {
        var task = sampleTask(name: "a.iso", done: 25, of: 100)
        (task.idleSince, task.reconnectsAt) = (0, 60_000)
        #expect(layout(79).line(task, now: 4_999).contains("█"))
        #expect(layout(79).line(task, now: 40_200).hasPrefix("no data for 40 s, reconnects in 20 s  "))
        #expect(
            Describe.state(task, now: 40_200, namesState: true)
                == "active 25%: no data for 40 s, reconnects in 20 s")
        #expect(Describe.stall(task, now: 61_000) == "no data for 1 min 1 s, reconnects now")
        (task.phase, task.reconnectsAt) = (.connecting, nil)
        #expect(Describe.state(task, now: 9_000) == "connecting, no data for 9 s")
        (task.phase, task.idleSince) = (.verifying, nil)
        #expect(Describe.state(task, now: 9_000) == "verifying")
    }

    @Test("the totals are bytes, rate, time left and how many are done, at 80 columns too")
    func totals() {
        var total = BarLayout.Total(
            tasks: 12, completed: 2, others: others(.failed), bytes: 120 << 20, bytesTotal: 1 << 30, rate: 4 << 20)
        let line = layout(79).total(total)
        #expect(line.hasSuffix("2 of 12 completed, 1 failed  120 MiB of 1.0 GiB  4.0 MiB/s  3:46 left"))
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

    @Test("a time of the next day says so")
    func tomorrow() {
        for hour: Milliseconds in 0..<24 {
            let (now, later) = (hour * 3_600_000, (hour + 2) * 3_600_000)
            let isTomorrow = Clock.local(now).prefix(10) != Clock.local(later).prefix(10)
            #expect(Clock.brief(later, now: now).hasPrefix("tomorrow ") == isTomorrow)
        }
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
