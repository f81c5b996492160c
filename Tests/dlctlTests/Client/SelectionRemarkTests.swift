import TaskModel
import Testing

@testable import dlctl

@Suite("What a command on tasks says of bytes and files that are lost") struct SelectionRemarkTests {
    private func detail(
        _ id: Int64, _ state: TaskState, resumable: Bool? = nil, file: FileState? = nil
    ) -> TaskDetail {
        var detail = TaskDetail(sampleTask(id, state, done: 10, of: 20))
        detail.status.path = "/d/\(id).iso"
        detail.status.fileState = file
        detail.resumable = resumable
        return detail
    }

    @Test("a pause names the tasks that begin again, and no others")
    func pause() {
        let tasks = [detail(1, .paused, resumable: false), detail(2, .paused, resumable: true), detail(3, .paused)]
        #expect(
            Context.lostProgress(tasks)
                == "task 1: resume probably begins again from 0: the server does not offer to continue a file")
        #expect(Context.lostProgress(tasks + [detail(4, .paused, resumable: false)])?.hasPrefix("tasks 1 4: ") == true)
        #expect(Context.lostProgress(Array(tasks.dropFirst()) + [detail(5, .completed, resumable: false)]) == nil)
    }

    @Test("a retry of completed tasks tells how many files are replaced, and warns of changed ones")
    func retry() {
        let tasks = [
            detail(1, .completed, file: .present), detail(2, .completed, file: .replaced),
            detail(3, .completed, file: .missing), detail(4, .failed),
        ]
        #expect(Context.replaced(tasks)?.hasPrefix("2 files stay until the new ones are complete") == true)
        #expect(Context.replaced([tasks[0]]) == "1 file stays until the new one is complete, and is then replaced")
        #expect(Context.replaced(Array(tasks.suffix(2))) == nil)
        let warnings = Context.lostChanges(tasks)
        #expect(warnings.count == 1 && warnings[0].hasPrefix("warning: /d/2.iso was changed or replaced since task 2"))
    }

    @Test("a taken name is told with what the rule makes of it")
    func conflict() {
        #expect(Context.conflict(nil, isUpdate: false).contains("(1)"))
        #expect(Context.conflict(.rename, isUpdate: false).hasSuffix("as in \"a (1).iso\""))
        #expect(Context.conflict(.skip, isUpdate: false).contains("nothing is fetched"))
        #expect(Context.conflict(nil, isUpdate: true).contains("replaced if the server has another version"))
        let texts = ConflictPolicy.allCases.map { Context.conflict($0, isUpdate: false) }
        #expect(Set(texts).count == texts.count)
    }
}
