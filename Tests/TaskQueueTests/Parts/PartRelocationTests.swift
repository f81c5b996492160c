import Glibc
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Directories that change")
struct PartRelocationTests {
    private let body = Resource(size: 4_000_000)

    /// Creates a server whose first response becomes slow after 1,000,000 bytes, and whose next is as fast as possible.
    private func server() throws -> ScriptedServer {
        try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
    }

    private func update(
        _ id: TaskID, _ fixture: QueueFixture, _ make: (inout TaskChanges) -> Void
    ) async throws -> TaskStatus? {
        var changes = TaskChanges()
        make(&changes)
        return try await fixture.queue.update(id, by: changes, for: QueueFixture.me)
    }

    /// Returns a paused task with some bytes in its part file.
    private func paused(_ fixture: QueueFixture, _ server: ScriptedServer) async throws -> TaskID {
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        return id
    }

    private func parts(_ fixture: QueueFixture) -> [String] {
        fixture.files.filter { $0.hasSuffix(".part") }
    }

    /// Checks that the file is complete, at its place, of bytes that were fetched once, and that no part file is left.
    private func expectWhole(_ status: TaskStatus, at path: String, _ fixture: QueueFixture) {
        #expect(status.path == path && body.difference(fromFileAt: path) == nil)
        #expect(status.bytesFetched - body.size < 200_000, "\(status.bytesFetched)")
        #expect(parts(fixture) == [], "\(fixture.files)")
    }

    @Test("a task that runs goes on in another directory with the bytes that it has")
    func running() async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        let told = try await update(id, fixture) { $0.directory = .set("isos/new") }
        #expect(told?.path == fixture.downloads + "/isos/new/a")
        expectWhole(try await fixture.completed(id), at: fixture.downloads + "/isos/new/a", fixture)
        #expect(try fixture.store.partMoves() == [])
    }

    @Test("the part of a task that does not run goes along, there and back")
    func paused() async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await paused(fixture, server)
        let part = fixture.partName(of: id)
        _ = try await update(id, fixture) { $0.directory = .set("isos") }
        #expect(parts(fixture) == ["isos/" + part])
        _ = try await update(id, fixture) { $0.directory = .takeBack }
        #expect(parts(fixture) == [part])
        _ = try await update(id, fixture) { $0.directory = .set(fixture.downloads + "/./") }
        #expect(parts(fixture) == [part])
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        expectWhole(try await fixture.completed(id), at: fixture.downloads + "/a", fixture)
    }

    @Test("a task without bytes makes no directory before it runs")
    func withoutPart() async throws {
        let fixture = try await QueueFixture()
        let id = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        #expect(try await update(id, fixture) { $0.directory = .set("isos") }?.path == fixture.downloads + "/isos/a")
        #expect(fixture.files == [])
        // A directory that a new task could not have is refused at once.
        _ = try fixture.directory.write("", to: "downloads/file")
        let refusal = try await fault { try await update(id, fixture) { $0.directory = .set("file/deep") } }
        #expect(refusal?.field == "changes.directory" && refusal?.code == .pathNotAllowed)
        #expect(try await fixture.status(id).path == fixture.downloads + "/isos/a")
    }

    @Test("what is here stays where it is where it cannot go along, and the refusal says why")
    func refused() async throws {
        let server = try server()
        let fixture = try await QueueFixture { $0.downloadRoots = ["/dev/shm"] }
        let id = try await paused(fixture, server)
        _ = try fixture.directory.write("", to: "downloads/file")
        for (directory, words) in [("/dev/shm", "is on another file system"), ("file/deep", "is not a directory")] {
            let refusal = try await fault { try await update(id, fixture) { $0.directory = .set(directory) } }
            #expect(refusal?.field == "changes.directory" && refusal?.code == .pathNotAllowed)
            #expect(refusal?.message.contains(words) == true, "\(refusal?.message ?? "none")")
        }
        #expect(parts(fixture).count == 1)
        #expect(try fixture.store.partMoves() == [])
        #expect(try await fixture.status(id).path == fixture.downloads + "/a")
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        expectWhole(try await fixture.completed(id), at: fixture.downloads + "/a", fixture)
    }

    /// The moments of the daemon's death between two steps.
    enum Death: CaseIterable {
        case beforeMove, beforeCommit, afterCommit
    }

    @Test(
        "a daemon that dies while a part moves finds it in its next life, and nothing is fetched twice",
        arguments: Death.allCases)
    func death(_ death: Death) async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await paused(fixture, server)
        await fixture.queue.stop()
        let part = fixture.partName(of: id)
        try await fixture.store.record([PartMove(id: id, directories: [nil, "isos"])])
        if death != .beforeMove {
            // The directory is created in the same way as by the daemon.
            _ = try Directory.open(root: fixture.downloads).make(["isos"])
            try #require(rename(fixture.downloads + "/" + part, fixture.downloads + "/isos/" + part) == 0)
        }
        if death == .afterCommit {
            var changes = TaskChanges()
            changes.directory = .set("isos")
            let settings = fixture.settings
            let outcome = try await fixture.store.update(id, by: changes, owner: nil, now: 1) {
                (asked, before, owner) throws(FieldError) in
                var admission = Admission(settings: settings, caller: QueueFixture.me, now: 1)
                return try admission.readmit(asked, after: before, names: true, owner: owner)
            }
            #expect(outcome == .updated)
        }
        let next = try QueueFixture.queue(fixture.store, fixture.settings)
        await next.start()
        #expect(try fixture.store.partMoves() == [])
        try await QueueFixture.takeUp(id, in: next)
        let status = try await fixture.status(id, once: [.completed], in: next)
        let place = death == .afterCommit ? "/isos/a" : "/a"
        expectWhole(status, at: fixture.downloads + place, fixture)
        await next.stop()
    }

    @Test("a part whose task is gone is removed, and one that lies beside a newer one too")
    func leftovers() async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await paused(fixture, server)
        await fixture.queue.stop()
        let (part, gone) = (
            fixture.partName(of: id),
            fixture.partName(of: TaskID(99))
        )
        _ = try fixture.directory.makeDirectory("downloads/isos")
        _ = try fixture.directory.write("old", to: "downloads/isos/" + part)
        _ = try fixture.directory.write("old", to: "downloads/isos/" + gone)
        let ids = [id, TaskID(99)]
        try await fixture.store.record(ids.map { PartMove(id: $0, directories: [nil, "isos"]) })
        let next = try QueueFixture.queue(fixture.store, fixture.settings)
        await next.start()
        #expect(parts(fixture) == [part])
        #expect(try fixture.store.partMoves() == [])
        try await QueueFixture.takeUp(id, in: next)
        expectWhole(
            try await fixture.status(id, once: [.completed], in: next), at: fixture.downloads + "/a", fixture)
        await next.stop()
    }

    @Test("a file that an earlier life finished is not left behind: its task cannot be sent elsewhere any more")
    func finished() async throws {
        let server = try ScriptedServer(["/a": [.serveThenCut(body, after: 1_000_000), .status(503)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        let next = try await fixture.nextLife(of: id, whichFinished: body, as: "a")
        for make in [
            { $0.directory = .set("isos") }, { $0.checksum = .set("sha256:" + String(repeating: "0", count: 64)) },
            { $0.output = .set("b") },
        ] as [(inout TaskChanges) -> Void] {
            var changes = TaskChanges()
            make(&changes)
            let asked = changes
            let refusal = try await fault { try await next.update(id, by: asked, for: QueueFixture.me) }
            #expect(refusal?.message.contains(fixture.downloads + "/a is finished") == true)
        }
        try await QueueFixture.takeUp(id, in: next)
        let status = try await fixture.status(id, once: [.completed], in: next)
        #expect(status.path == fixture.downloads + "/a" && fixture.files == ["a"])
        await next.stop()
    }

    @Test("changed directories, removals and pauses all at once leave no part without its task")
    func storm() async throws {
        let server = try ScriptedServer(["/a": [.drip(body, after: 0, bytesPerSecond: 1_000_000)]])
        let fixture = try await QueueFixture()
        var ids: [TaskID] = []
        for number in 0..<8 { ids.append(try await fixture.add(server.url("/a")) { $0.output = "\(number)" }) }
        for id in ids { try await fixture.running(id, bytes: 100_000) }
        let all = ids
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<32 {
                group.addTask {
                    var changes = TaskChanges()
                    changes.directory = .set("d\(number % 5)")
                    _ = try? await fixture.queue.update(all, by: changes, for: QueueFixture.me)
                }
                guard number % 8 == 0 else { continue }
                group.addTask {
                    _ = try? await fixture.queue.remove(
                        [all[number / 8]], deletesFiles: false, by: QueueFixture.me)
                }
            }
        }
        let left = Array(all.dropFirst(4))
        _ = try await fixture.queue.apply(.pause, to: left, by: QueueFixture.me)
        var expected: [String] = []
        for id in left {
            let path = try #require(try await fixture.status(id).path)
            let directory = FileName.directory(of: path).dropFirst(fixture.downloads.utf8.count + 1)
            expected.append(directory + fixture.partName(of: id))
        }
        #expect(parts(fixture) == expected.sorted())
        #expect(try fixture.store.partMoves() == [])
    }
}
