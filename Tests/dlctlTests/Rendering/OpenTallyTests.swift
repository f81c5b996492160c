import TaskModel
import Testing

@testable import dlctl

@Suite struct OpenTallyTests {
    private func event(_ type: TaskEvent.Kind) -> TaskEvent { TaskEvent(sequence: 1, at: 0, type: type, id: TaskID(1)) }

    @Test("the total line has counts, bytes, rate and time left; an unknown size is left out")
    func total() {
        var tally = OpenTally()
        tally.record(sampleStatus(["active": 1, "queued": 2, "waiting": 3], down: 1 << 20), at: 0)
        tally.end(event(.completed))
        tally.end(event(.failed))
        let layout = BarLayout(width: 100, style: Terminal.Style(colour: false, unicode: true))
        let line = layout.open(tally.total(of: [sampleTask(done: 1 << 20, of: 11 << 20)]))
        #expect(
            line.hasSuffix(
                "1 active, 5 waiting, 1 done, 1 not completed  1.0 MiB of 11.0 MiB  1.0 MiB/s  0:10 left"), "\(line)")
        #expect(layout.open(tally.total(of: [sampleTask(done: 5)])).hasSuffix("  5 B  1.0 MiB/s  -:-- left"))
        for width in [20, 40, 79] {
            let narrow = BarLayout(width: width, style: Terminal.Style(colour: false, unicode: true))
            #expect(DisplayWidth.of(narrow.open(tally.total(of: []))) <= width)
        }
    }

    @Test("the summary has the bytes of the rates over time, without the time in which the daemon was away")
    func headline() {
        var tally = OpenTally()
        for second: Int64 in [0, 1, 2, 60, 61] { tally.record(sampleStatus(down: 1 << 20), at: second * 1000) }
        tally.end(event(.completed))
        #expect(tally.headline(elapsed: 60_000) == "1 task completed; 3.0 MiB in 1 min 0 s, 51.2 KiB/s")
        tally.end(event(.cancelled))
        #expect(tally.headline(elapsed: 0).hasPrefix("1 task completed, 1 not; 3.0 MiB in 0 ms"))
    }
}
