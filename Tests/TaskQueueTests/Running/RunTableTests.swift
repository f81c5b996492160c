import TaskModel
import Testing

@testable import TaskQueue

@Suite("Running and held tasks")
struct RunTableTests {
    private let ids = (1...600).map { TaskID($0) }

    @Test("a command holds tasks of the owner whose tasks it may change, and of nobody else")
    func owners() {
        var table = RunTable(changes: ChangeCount())
        table.hold([ids[0], ids[1]], of: 1)
        #expect(table.isBusy(ids[0], of: 1) && !table.isBusy(ids[0], of: 2))
        #expect(table.busy(of: 1) == [ids[0], ids[1]] && table.busy(of: 2).isEmpty)
        table.hold([ids[0]], of: nil)
        #expect(table.isBusy(ids[0], of: 2) && table.busy(of: 2) == [ids[0]])
        table.release([ids[0], ids[1]], of: 1)
        #expect(table.isBusy(ids[0], of: 1) && !table.isBusy(ids[1], of: 1))
        table.release([ids[0]], of: nil)
        #expect(!table.isBusy(ids[0], of: 2))
    }

    @Test("of two commands that hold a task, the last one releases it")
    func twice() {
        var table = RunTable(changes: ChangeCount())
        for _ in 0..<2 { table.hold([ids[0]], of: 1) }
        table.release([ids[0]], of: 1)
        #expect(table.isBusy(ids[0], of: 1))
        table.release([ids[0]], of: 1)
        #expect(!table.isBusy(ids[0], of: 1))
    }

    @Test("an owner of whose tasks many are held rests until they are released")
    func resting() {
        var table = RunTable(changes: ChangeCount())
        table.hold(Array(ids.prefix(499)), of: 1)
        #expect(!table.isResting(1))
        table.hold(Array(ids.suffix(101)), of: 1)
        #expect(table.isResting(1) && !table.isResting(2))
        table.release(ids, of: 1)
        #expect(!table.isResting(1))
        table.hold(ids, of: nil)
        #expect(!table.isResting(1), "an administrator's command does not stop everybody")
    }
}
