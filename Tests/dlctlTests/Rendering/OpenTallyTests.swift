import TaskModel
import Testing

@testable import dlctl

@Suite struct OpenTallyTests {
    private func event(_ type: TaskEvent.Kind) -> TaskEvent { TaskEvent(sequence: 1, at: 0, type: type, id: TaskID(1)) }

    @Test("the total line has counts, bytes, rate and time left; an unknown size is left out")
    func total() {
        var tally = OpenTally()
        tally.record(sampleStatus(["active": 1, "queued": 2, "waiting": 3], down: 1 << 20), [], since: 0)
        tally.end(event(.completed), nil)
        tally.end(event(.failed), nil)
        let layout = BarLayout(width: 100, style: Terminal.Style(colour: false, unicode: true))
        let line = layout.open(tally.total(of: [sampleTask(done: 1 << 20, of: 11 << 20)]))
        #expect(
            line.hasSuffix(
                "1 active, 5 waiting, 1 completed, 1 failed  1.0 MiB of 11.0 MiB  1.0 MiB/s  0:10 left"), "\(line)")
        #expect(layout.open(tally.total(of: [sampleTask(done: 5)])).hasSuffix("  5 B  1.0 MiB/s  -:-- left"))
        for width in [20, 40, 79] {
            let narrow = BarLayout(width: width, style: Terminal.Style(colour: false, unicode: true))
            #expect(DisplayWidth.of(narrow.open(tally.total(of: []))) <= width)
        }
        let narrow = BarLayout(width: 56, style: Terminal.Style(colour: false, unicode: true))
        #expect(narrow.open(tally.total(of: [])) == "1 active, 5 waiting, 1 completed, 1 failed  1.0 MiB/s")
    }

    @Test("the summary counts the bytes of the watch: all of new tasks, of older ones what came since they were seen")
    func headline() {
        var tally = OpenTally()
        var old = sampleTask(1, done: 5 << 20)
        var new = sampleTask(2, done: 1 << 20)
        new.createdAt = 1_000
        tally.record(sampleStatus(), [old, new], since: 500)
        old.bytesFetched = 6 << 20
        tally.record(sampleStatus(), [old, new], since: 500)
        old.bytesFetched = 7 << 20
        tally.end(event(.completed), old)
        #expect(tally.headline(elapsed: 60_000) == "1 task completed: 3.0 MiB in 1 min 0 s, 51.2 KiB/s")
        var quick = TaskEvent(sequence: 1, at: 0, type: .cancelled, id: TaskID(9))
        quick.bytesDone = 1 << 20
        tally.end(quick, nil)
        #expect(tally.headline(elapsed: 0).hasPrefix("1 task completed, 1 cancelled: 4.0 MiB in 0 ms"))
    }
}
