import Glibc
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Parts that are left over")
struct LeftoverPartsTests {
    private let body = Resource(size: 4_000_000)

    private func server() throws -> ScriptedServer {
        try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
    }

    @Test("a task that is skipped after a stop leaves no part")
    func skip() async throws {
        let (server, fixture) = (try self.server(), try await QueueFixture())
        let id = try await fixture.add(server.url("/a")) {
            $0.output = "x"
            $0.onConflict = .skip
        }
        try await fixture.running(id, bytes: 500_000)
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        #expect(fixture.parts == [fixture.partName(of: id)])
        try Resource(size: 10).write(to: fixture.downloads + "/x")
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        _ = try await fixture.completed(id)
        #expect(fixture.files == ["x"])
    }

    @Test("removing a completed task takes along a part that stayed")
    func removal() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        await fixture.queue.leftoverParts.stop()
        try Resource(size: 10).write(to: fixture.downloads + "/" + fixture.partName(of: id))
        _ = try await fixture.queue.remove([id], deletesFiles: false, by: QueueFixture.me)
        #expect(fixture.files == ["a"])
    }

    @Test("a start removes what no task goes on with, in every directory that is known, and nothing else")
    func start() async throws {
        let (server, fixture) = (try self.server(), try await QueueFixture())
        let paused = try await fixture.add(server.url("/a"))
        try await fixture.running(paused, bytes: 500_000)
        _ = try await fixture.queue.apply(.pause, to: [paused], by: QueueFixture.me)
        var gone: [TaskID] = []
        for directory in [nil, "sub", "missing"] as [String?] {
            gone.append(
                try await fixture.add("http://127.0.0.1:9/a") {
                    $0.directory = directory
                    $0.paused = true
                })
        }
        _ = try await fixture.queue.remove(gone, deletesFiles: false, by: QueueFixture.me)
        await fixture.queue.stop()
        guard mkdir(fixture.downloads + "/sub", 0o755) == 0 else { throw SystemError("making a directory") }
        let left = [fixture.partName(of: gone[0]), "sub/" + fixture.partName(of: gone[1])]
        let others = [".dld-ffffffff-\(gone[0]).part", fixture.partName(of: TaskID(999)), "sub/notes.part"]
        for file in left + others { try Resource(size: 10).write(to: fixture.downloads + "/" + file) }
        let (link, target) = (fixture.partName(of: gone[2]), fixture.directory.file("target"))
        try Resource(size: 10).write(to: target)
        guard symlink(target, fixture.downloads + "/" + link) == 0,
            mkfifo(fixture.downloads + "/sub/" + fixture.partName(of: gone[2]), 0o600) == 0
        else { throw SystemError("making others' files") }
        try fixture.store.close()
        let store = try TaskStore(directory: fixture.directory.file("state"))
        let next = try QueueFixture.queue(store, fixture.settings)
        await next.start()
        try await eventually(that: "what is left is removed") { left.allSatisfy { !fixture.files.contains($0) } }
        let names = fixture.files
        for file in others + [link, "sub/" + fixture.partName(of: gone[2]), fixture.partName(of: paused)] {
            #expect(names.contains(file), "\(file)")
        }
        #expect(access(target, F_OK) == 0)
        await next.stop()
        try store.close()
    }

    @Test("directories in which tasks end are looked at again, each at most once in ten seconds")
    func afterEnds() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let fixture = try await QueueFixture(clock: manual.clock)
        let ids = [try await fixture.add(server.url("/a")), try await fixture.add(server.url("/a"))]
        for id in ids { _ = try await fixture.completed(id) }
        let left = fixture.downloads + "/" + fixture.partName(of: ids[0])
        for _ in 0..<2 {
            try Resource(size: 10).write(to: left)
            await fixture.queue.leftoverParts.enqueue([PartPlace(directory: nil, owner: QueueFixture.me.uid)])
            try await eventually(that: "the part is removed") {
                manual.advance(by: 2_000)
                return access(left, F_OK) != 0
            }
        }
    }
}
