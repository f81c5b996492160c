import TaskModel
import TaskStore
import Testing

@testable import TaskQueue

@Suite("Starts that are still to be recorded")
struct StartRecordsTests {
    private static func progress(_ bytes: UInt8...) -> TaskProgress {
        TaskProgress(bytesDone: 0, bytesTotal: nil, bytesFetched: 0, resumeData: bytes)
    }

    /// The tasks whose starts are among the changes, and those whose progress is.
    private static func tasks(_ changes: [TaskChange]) -> (started: [TaskID], progress: [TaskID]) {
        (
            changes.compactMap { if case .started(let id, _) = $0 { id } else { nil } },
            changes.compactMap { if case .checkpoint(let id, _) = $0 { id } else { nil } }
        )
    }

    @Test("one recording is scheduled for all starts, in the order of their times, and one at once for uploads")
    func together() {
        var starts = StartRecords()
        let withoutStarts = starts.schedule()
        #expect(withoutStarts == nil)
        starts.add(TaskID(2), at: 20)
        let (first, again) = (starts.schedule(), starts.schedule())
        #expect(first == StartRecords.delay && again == nil)
        starts.add(TaskID(3), at: 10)
        starts.add(Self.progress(1), of: TaskID(3))
        let (upload, uploadAgain) = (starts.schedule(), starts.schedule())
        #expect(upload == 0 && uploadAgain == nil)
        let drained = Self.tasks(starts.drainScheduled())
        #expect(drained.started == [TaskID(3), TaskID(2)] && drained.progress == [TaskID(3)])
        let afterwards = starts.schedule()
        #expect(afterwards == nil)
    }

    @Test("a result takes the start of its run along, and makes the record of its source superfluous")
    func results() {
        var starts = StartRecords()
        for id in 1...3 as ClosedRange<Int64> {
            starts.add(TaskID(id), at: id)
            starts.add(Self.progress(UInt8(id)), of: TaskID(id))
        }
        let withResults = Self.tasks(starts.drain(for: [TaskID(2), TaskID(1)]))
        #expect(withResults.started == [TaskID(1), TaskID(2)] && withResults.progress == [])
        let rest = Self.tasks(starts.drainScheduled())
        #expect(rest.started == [TaskID(3)] && rest.progress == [TaskID(3)])
    }

    @Test("starts of one moment keep their order, and those before a run that ended already are recorded before it")
    func order() {
        var starts = StartRecords()
        for id in [12, 13, 7, 5] as [Int64] { starts.add(TaskID(id), at: 1) }
        #expect(Self.tasks(starts.drain(for: [TaskID(13)])).started == [TaskID(12), TaskID(13)])
        #expect(starts.drain(for: [TaskID(12)]) == [])
        #expect(Self.tasks(starts.drainScheduled()).started == [TaskID(7), TaskID(5)])
    }

    @Test("a source whose start is recorded already is recorded too")
    func sourceAlone() {
        var starts = StartRecords()
        starts.add(TaskID(1), at: 1)
        _ = starts.drainScheduled()
        starts.add(Self.progress(1), of: TaskID(1))
        let delay = starts.schedule()
        #expect(delay == 0)
        #expect(Self.tasks(starts.drainScheduled()).progress == [TaskID(1)])
    }
}
