import Testing

@testable import TaskModel

@Suite("Pauses within pauses")
struct TaskPausesTests {
    @Test("F84: resuming a selection ends its own pause and the wider ones, and none is left after an id")
    func left() {
        let cases: [(pauses: TaskPauses, width: TaskPauses, left: TaskPauses)] = [
            ([.single], .single, []), ([.single], .matching, []), ([.single], .all, []),
            ([.single, .all], .all, [.single]), ([.single, .all], .matching, [.single]),
            ([.single, .all], .single, []), ([.single, .matching, .all], .all, [.single, .matching]),
            ([.single, .matching, .all], .matching, [.single]), ([.matching], .all, []), ([.all], .matching, []),
            ([.matching, .all], .all, [.matching]),
        ]
        for (pauses, width, left) in cases {
            #expect(pauses.left(byResuming: width) == left, "\(pauses) \(width)")
            // What the task needed from a person is left too, where a pause was wide.
            let needy = pauses.union(TaskPauses(need: .auth))
            let isWide = width != .single && pauses.rawValue >= width.rawValue
            #expect(needy.left(byResuming: width) == (isWide ? left.union(TaskPauses(need: .auth)) : []))
        }
        for reason in [TaskReason.auth, .urlExpired, .sourceChanged] {
            #expect(TaskPauses(need: reason).need == reason)
        }
        #expect(TaskPauses(need: .user).isEmpty && TaskPauses(need: nil).need == nil)
    }

    @Test("a filter with a condition besides the owner is narrower than all tasks")
    func widths() {
        #expect(TaskPauses.width(of: TaskFilter()) == .all && TaskPauses.width(of: TaskFilter(owner: 7)) == .all)
        let narrow = [
            TaskFilter(states: [.queued]), TaskFilter(batch: "b"), TaskFilter(search: "x"), TaskFilter(since: 1),
        ]
        for filter in narrow { #expect(TaskPauses.width(of: filter) == .matching) }
    }
}
