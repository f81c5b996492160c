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
        #expect(WaitTarget(ids: ids, states: [.active], verb: "watch").command(DaemonChoice()) == "dlctl watch active")
        #expect(WaitTarget.everything.command(DaemonChoice()) == "dlctl watch")
    }

    @Test("where no task is selected, the reason names the states and the batch")
    func absence() {
        let states = WaitTarget(ids: [], states: [.active, .queued], verb: "watch")
        #expect(states.absence == "nothing to watch: none of your tasks is active or queued")
        #expect(
            WaitTarget(ids: [], batch: "b").absence == "nothing to wait for: no task of the batch b is unfinished")
    }
}
