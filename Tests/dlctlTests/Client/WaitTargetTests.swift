import TaskModel
import Testing

@testable import dlctl

@Suite("How to wait again") struct WaitTargetTests {
    @Test("the command names the same tasks")
    func commands() {
        let ids = [TaskID(3), TaskID(4)]
        #expect(WaitTarget(ids: ids).command(DaemonChoice()) == "dlctl wait 3 4")
        #expect(WaitTarget(ids: ids, batch: "it's").command(DaemonChoice()) == #"dlctl wait --batch 'it'\''s'"#)
        let daemon = DaemonChoice(socket: "/s d")
        #expect(WaitTarget(ids: ids, isAll: true).command(daemon) == "dlctl --socket '/s d' wait --all")
        let many = (1...Int64(30)).map { TaskID($0) }
        #expect(WaitTarget(ids: many).command(DaemonChoice()) == "dlctl wait --all")
        #expect(WaitTarget(ids: many, verb: "watch").command(DaemonChoice()) == "dlctl watch")
        #expect(WaitTarget(ids: ids, batch: "b", verb: "watch").command(DaemonChoice()) == "dlctl watch --batch b")
    }
}
