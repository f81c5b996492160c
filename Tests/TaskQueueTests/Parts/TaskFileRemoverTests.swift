import Glibc
import Synchronization
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Removing the files of tasks")
struct TaskFileRemoverTests {
    private let me = QueueFixture.me.uid

    private func download(in directory: String?) -> TaskSpecification {
        var specification = TaskSpecification(url: "http://127.0.0.1:9/a")
        specification.directory = directory
        return specification
    }

    @Test("parts in more directories than are opened at once are all removed, with one sync of each")
    func manyDirectories() async throws {
        let fixture = try await QueueFixture()
        var parts: [(id: TaskID, directory: String)] = []
        for number in 0..<300 {
            let directory = "\(number % 150)"
            if number < 150 {
                guard mkdir(fixture.downloads + "/" + directory, 0o755) == 0 else {
                    throw SystemError("making a directory")
                }
            }
            let id = TaskID(Int64(number) + 1)
            try Resource(size: 10).write(to: "\(fixture.downloads)/\(directory)/\(fixture.partName(of: id))")
            parts.append((id, directory))
        }
        let synced = Mutex<[String]>([])
        var remover = TaskFileRemover(settings: fixture.settings, identity: fixture.store.identity) { directory in
            synced.withLock { $0.append(directory.path) }
        }
        for (id, directory) in parts { remover.removePart(of: id, download(in: directory), owner: me) }
        remover.removePart(of: TaskID(1), download(in: "missing"), owner: me)
        let open = openDescriptors(beneath: fixture.downloads + "/")
        #expect(open > 0 && open <= 64)
        remover.finish()
        let paths = synced.withLock { $0 }
        #expect(paths.count == 150 && Set(paths).count == 150)
        #expect(openDescriptors(beneath: fixture.downloads + "/") == 0)
        #expect(!fixture.files.contains { $0.contains(".part") })
        await fixture.queue.stop()
    }

    @Test("the file of a task whose directory is another one since is kept, with that as the reason")
    func otherDirectory() async throws {
        let fixture = try await QueueFixture()
        var record = TaskRecord(
            id: TaskID(1), specification: download(in: nil), owner: me,
            lifecycle: try #require(TaskLifecycle(state: .completed, reason: nil, notBefore: nil)), createdAt: 0)
        record.path = "/earlier/a"
        var remover = TaskFileRemover(settings: fixture.settings, identity: fixture.store.identity)
        let found = remover.removeFile(of: record)
        let kept = try #require(found)
        #expect(kept.code == .pathNotAllowed && kept.path == "/earlier/a")
        #expect(kept.reason.hasSuffix("\(fixture.downloads) since a change of the configuration"), "\(kept.reason)")
        await fixture.queue.stop()
    }

    @Test("a directory that is missing for a moment is looked for again with the next task")
    func missingForAMoment() async throws {
        let fixture = try await QueueFixture()
        let (first, second) = (TaskID(1), TaskID(2))
        var remover = TaskFileRemover(settings: fixture.settings, identity: fixture.store.identity)
        remover.removePart(of: first, download(in: "late"), owner: me)
        guard mkdir(fixture.downloads + "/late", 0o755) == 0 else { throw SystemError("making a directory") }
        for id in [first, second] {
            try Resource(size: 10).write(to: "\(fixture.downloads)/late/\(fixture.partName(of: id))")
        }
        remover.removePart(of: second, download(in: "late"), owner: me)
        remover.finish()
        #expect(fixture.parts == ["late/\(fixture.partName(of: first))"])
        await fixture.queue.stop()
    }

    @Test("removing many completed tasks removes exactly the files that are still theirs")
    func manyCompleted() async throws {
        let count = 300
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("/f\($0)", [.serve(Resource(size: Int64(10 + $0)))]) }))
        let fixture = try await QueueFixture()
        var ids: [TaskID] = []
        for number in 0..<count {
            ids.append(
                try await fixture.add(server.url("/f\(number)")) { $0.directory = "d\(number % 3)" })
        }
        for id in ids { _ = try await fixture.completed(id) }
        // Another program replaced one of the files.
        let replaced = fixture.downloads + "/d1/f1"
        guard unlink(replaced) == 0 else { throw SystemError("removing a file") }
        try Resource(size: 5).write(to: replaced)
        let outcome = try await fixture.queue.remove(ids, deletesFiles: true, by: QueueFixture.me)
        #expect(outcome.changed == count)
        #expect(outcome.refused.map(\.id) == [ids[1]])
        #expect(fixture.files.filter { $0.contains("/f") } == ["d1/f1"])
        await fixture.queue.stop()
    }

    @Test("a file whose directory cannot be opened is kept, and the reason is told")
    func unusableDirectory() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 10))]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/f")) { $0.directory = "d" }
        _ = try await fixture.completed(id)
        let (directory, moved) = (fixture.downloads + "/d", fixture.downloads + "/moved")
        guard rename(directory, moved) == 0, symlink(moved, directory) == 0 else {
            throw SystemError("replacing a directory")
        }
        let outcome = try await fixture.queue.remove([id], deletesFiles: true, by: QueueFixture.me)
        #expect(outcome.changed == 1)
        guard case .keptFile(let file) = outcome.refused.first?.reason else {
            Issue.record("nothing is told of the file")
            return
        }
        #expect(file.path == directory + "/f" && file.code == .pathNotAllowed && file.reason.contains(directory))
        #expect(fixture.files.contains("moved/f"))
        await fixture.queue.stop()
    }
}
