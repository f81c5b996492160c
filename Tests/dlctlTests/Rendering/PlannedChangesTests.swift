import ControlProtocol
import TaskModel
import Testing

@testable import dlctl

@Suite("What a dry run would change") struct PlannedChangesTests {
    @Test("each change has its sign, and what is not listed is counted")
    func lines() {
        let result = QueueCommitResult(
            added: 5, updated: 1, unchanged: 0, pruned: 1, ids: [],
            changes: [
                .init(action: .add, id: nil, kind: .download, url: "http://h/a", output: "a b", fields: []),
                .init(
                    action: .update, id: TaskID(7), kind: .upload, url: "http://h/b", output: nil,
                    fields: [
                        FieldDifference(field: "priority", from: nil, to: "high"),
                        FieldDifference(field: "limit", from: "2097152", to: nil),
                        FieldDifference(field: "password-file", from: nil, to: nil),
                    ]),
                .init(action: .prune, id: TaskID(8), kind: .download, url: "http://h/\u{9B}c", output: nil, fields: []),
            ])
        #expect(
            PlannedChanges.lines(result) == [
                "+ http://h/a as a b",
                "~ 7  ↑ http://h/b: priority none → high, limit 2.0 MiB/s → none, password-file changed",
                "- 8  http://h/\\u{9B}c", "… and 4 more",
            ])
        #expect(PlannedChanges.lines(QueueCommitResult(added: 1, updated: 0, unchanged: 0, pruned: 0, ids: [])).isEmpty)
    }
}
