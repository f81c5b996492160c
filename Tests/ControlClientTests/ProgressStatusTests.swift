import TaskModel
import Testing

@testable import ControlClient

@Suite("A status that follows events of progress")
struct ProgressStatusTests {
    private static func status(_ state: TaskState, bytesDone: Int64) -> TaskStatus {
        var status = TaskStatus(
            TaskRecord(
                id: TaskID(1), specification: TaskSpecification(url: "http://a/1"), owner: 0,
                lifecycle: TaskLifecycle(), createdAt: 0))
        status.state = state
        status.bytesDone = bytesDone
        return status
    }

    private static func event(bytesDone: Int64) -> TaskEvent {
        var event = TaskEvent(sequence: 1, at: 0, type: .progress, id: TaskID(1), state: .active)
        event.bytesDone = bytesDone
        event.bytesTotal = 100
        event.progress = .init(rate: 5, eta: 7, connections: 2)
        return event
    }

    @Test("an event with more bytes changes all values", arguments: [10, 11] as [Int64])
    func growth(bytesDone: Int64) {
        var status = Self.status(.active, bytesDone: 10)
        (status.idleSince, status.reconnectsAt) = (1, 2)
        let isApplied = status.advance(by: Self.event(bytesDone: bytesDone))
        #expect(isApplied)
        #expect(status.bytesDone == bytesDone && status.bytesTotal == 100)
        #expect(status.rate == 5 && status.eta == 7 && status.connections == 2)
        #expect(status.idleSince == nil && status.reconnectsAt == nil)
    }

    @Test(
        "an event that was on its way when the status was read, or of another state, changes nothing",
        arguments: [(.active, 9), (.waiting, 11)] as [(TaskState, Int64)])
    func refused(state: TaskState, bytesDone: Int64) {
        let read = Self.status(state, bytesDone: 10)
        var status = read
        let isApplied = status.advance(by: Self.event(bytesDone: bytesDone))
        #expect(!isApplied)
        #expect(status == read)
    }
}
