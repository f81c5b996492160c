import TaskModel
import TaskStore
import Testing
import Transfer

@testable import TaskQueue

@Suite("Parts that no task goes on with")
struct PartEvaluatorTests {
    private static let identity = "0123abcd"
    /// The first life of the store assigned the ids 1 to 10, the second one 11 to 20.
    private let evaluator = PartEvaluator(
        identity: identity,
        lifetimes: [
            StoreLifetime(newest: TaskID(0), since: 1_000_000), StoreLifetime(newest: TaskID(10), since: 2_000_000),
        ])
    private let newest = TaskID(20)

    /// Returns the traces of a part of the task `id` that was added at the time `createdAt`.
    private func marked(_ id: Int64, _ createdAt: Milliseconds) -> Directory.PartTraces {
        .init(owner: "\(Self.identity)-\(id)-\(String(createdAt, radix: 36))", changed: createdAt + 5_000)
    }

    private func unmarked(_ changed: Milliseconds) -> Directory.PartTraces { .init(owner: nil, changed: changed) }

    private func isLeft(_ id: Int64, _ task: PartTask?, _ traces: Directory.PartTraces) -> Bool {
        evaluator.isLeft(TaskID(id), task, newest: newest, traces)
    }

    @Test("names are this store's, and written as numbers are, or they are nobody's")
    func names() {
        func id(_ name: String) -> TaskID? { PartEvaluator.id(in: name, identity: Self.identity) }
        #expect(id(".dld-0123abcd-17.part") == TaskID(17))
        for name in [
            ".dld-0123abce-17.part", ".dld-0123abcd-017.part", ".dld-0123abcd-+17.part", ".dld-0123abcd-0.part",
            ".dld-0123abcd--1.part", ".dld-0123abcd-.part", ".dld-0123abcd-17.part2", "dld-0123abcd-17.part",
            ".dld-0123abcd-99999999999999999999.part", ".dld-0123abcd-١٧.part", ".dld-0123abcd-17.part ", "",
        ] { #expect(id(name) == nil, "\(name)") }
    }

    @Test("a task that may go on keeps its part")
    func live() {
        let task = PartTask(createdAt: 1_500_000, isCompleted: false)
        #expect(!isLeft(5, task, marked(5, 1_500_000)) && !isLeft(5, task, unmarked(1_500_000)))
        // The part may be of any task.
        #expect(!isLeft(5, task, marked(5, 1_400_000)))
    }

    @Test("a completed task needs no part, and neither does one that is gone")
    func ended() {
        let task = PartTask(createdAt: 1_500_000, isCompleted: true)
        #expect(isLeft(5, task, marked(5, 1_500_000)) && isLeft(5, task, unmarked(1_600_000)))
        #expect(isLeft(5, nil, marked(5, 1_500_000)) && isLeft(5, nil, unmarked(1_600_000)))
        #expect(isLeft(15, nil, marked(15, 2_500_000)) && isLeft(15, nil, unmarked(1_999_000)))
    }

    @Test("what an older copy of the database does not know stays, also once it has given the number itself")
    func olderCopy() {
        #expect(!isLeft(21, nil, marked(21, 2_500_000)) && !isLeft(21, nil, unmarked(2_500_000)))
        // The copy ends with task 10 and was restored at 2,000,000; the newer database had added 11 to 20 before.
        #expect(!isLeft(15, nil, marked(15, 1_900_000)) && !isLeft(15, nil, unmarked(1_900_000)))
        let again = PartTask(createdAt: 2_500_000, isCompleted: true)
        #expect(!isLeft(15, again, marked(15, 1_900_000)) && !isLeft(15, again, unmarked(1_900_000)))
    }

    @Test("a mark of something else is no proof")
    func otherMark() {
        for owner in ["0123abcd-6-xyz", "ffffffff-5-xyz", "0123abcd-5-", "0123abcd-5-!", "", "download-abc"] {
            #expect(!isLeft(5, nil, .init(owner: owner, changed: 5_000_000)), "\(owner)")
        }
    }
}
