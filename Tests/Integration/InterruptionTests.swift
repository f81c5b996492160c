import Glibc
import TaskModel
import TestSupport
import Testing

/// A large file over a slow line, interrupted by pauses, kills and terminations.
@Suite("Interruptions", .serialized, .timeLimit(.minutes(3)))
struct InterruptionTests {
    @Test("300 MiB, paused, resumed and interrupted by SIGKILL, end byte-exact and are hardly fetched twice")
    func pausedResumedKilled() async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: Int(16 * mebibyte))])
        let resource = Resource(size: 300 * mebibyte)
        try nginx.publish(resource, as: "large.img")
        let daemon = try await DaemonProcess.started()
        let final = daemon.path("large.img")
        let id = try await daemon.add(nginx.url("/slow/large.img"))
        func reaches(_ count: Int64) async throws {
            try await daemon.state(of: id, "to reach \(count) bytes") { task in
                if task.state != .completed { #expect(!exists(final)) }
                return task.bytesDone >= count
            }
        }

        try await reaches(60 * mebibyte)
        let paused = try await daemon.dlctl("pause", id.description)
        #expect(paused.succeeded, "\(paused.error)")
        let atRest = try daemon.task(id)
        #expect(atRest.state == .paused)
        #expect(atRest.reason == .user)
        try await Task.sleep(for: .milliseconds(700))
        let later = try daemon.task(id)
        #expect(later.bytesDone == atRest.bytesDone)
        #expect(later.bytesFetched == atRest.bytesFetched)
        #expect(!exists(final))
        #expect(daemon.partFiles.count == 1)

        let resumed = try await daemon.dlctl("resume", id.description)
        #expect(resumed.succeeded, "\(resumed.error)")
        try await reaches(170 * mebibyte)
        try await daemon.kill()
        #expect(!exists(final))
        try await daemon.start()
        // The checkpoint rule: at most 2 s or 64 MiB are lost.
        #expect(try daemon.task(id).bytesDone >= 100 * mebibyte)

        let task = try await daemon.state(of: id, "to end", within: .seconds(90)) { task in
            if !task.isSettled, exists(final) {
                // The file is published before its completion is reported: it must be complete.
                #expect(size(of: final) == resource.size)
            }
            return task.isSettled
        }
        #expect(task.state == .completed)
        #expect(task.attempts <= 1)
        #expect(task.bytesFetched >= resource.size)
        #expect(task.bytesFetched < resource.size / 4 * 5)
        let sent = nginx.accesses(for: "/slow/large.img").reduce(0) { $0 + $1.bodyBytes }
        // The bytes in the socket buffers of each connection, at the pause and at the kill, are counted too.
        #expect(sent < resource.size / 2 * 3)
        #expect(resource.difference(fromFileAt: final) == nil)
        daemon.expectTidy()
    }

    @Test("F63: SIGTERM ends the daemon with 0 and with all progress written down")
    func terminated() async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: Int(8 * mebibyte))])
        let resource = Resource(size: 40 * mebibyte)
        try nginx.publish(resource, as: "file")
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(nginx.url("/slow/file"))
        let before = try await daemon.state(of: id, "to reach 12 MiB") { $0.bytesDone >= 12 * mebibyte }
        #expect(try await daemon.terminate() == .exited(0))
        #expect(!exists(daemon.socket))
        #expect(!exists(daemon.path("file")))
        try await daemon.start()
        #expect(try daemon.task(id).bytesDone >= before.bytesDone)
        let task = try await daemon.settled(id)
        #expect(task.state == .completed)
        #expect(task.attempts <= 1)
        #expect(task.bytesFetched < resource.size / 4 * 5)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test("a paused task stays paused over SIGKILL, and its bytes stay")
    func pausedOverKill() async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: Int(4 * mebibyte))])
        let resource = Resource(size: 12 * mebibyte)
        try nginx.publish(resource, as: "file")
        let daemon = try await DaemonProcess.started(oneConnection)
        let id = try await daemon.add(nginx.url("/slow/file"))
        try await daemon.state(of: id, "to reach 3 MiB") { $0.bytesDone >= 3 * mebibyte }
        #expect(try await daemon.dlctl("pause", id.description).succeeded)
        let before = try daemon.task(id)
        try await daemon.kill()
        try await daemon.start()
        let after = try daemon.task(id)
        #expect(after.state == .paused)
        #expect(after.reason == .user)
        #expect(after.bytesDone == before.bytesDone)
        #expect(try await daemon.dlctl("resume", id.description).succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test("cancel keeps the part and remove deletes it")
    func cancelAndRemove() async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: Int(mebibyte / 2))])
        try nginx.publish(Resource(size: 40 * mebibyte), as: "file")
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(nginx.url("/slow/file"))
        try await daemon.state(of: id, "to reach 1 MiB") { $0.bytesDone >= mebibyte }
        #expect(try await daemon.dlctl("cancel", id.description).succeeded)
        #expect(try daemon.task(id).state == .cancelled)
        #expect(daemon.partFiles.count == 1)
        #expect(try await daemon.dlctl("retry", id.description).succeeded)
        try await daemon.state(of: id, "to go on") { $0.state == .active && $0.bytesDone >= mebibyte }
        #expect(try await daemon.dlctl("remove", id.description).succeeded)
        #expect(try await daemon.dlctl("show", id.description).status == .exited(1))
        #expect(!exists(daemon.path("file")))
        daemon.expectTidy()
    }

    @Test("a wait ends when its time is over, though the daemon stands still and answers nothing")
    func stopped() async throws {
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add("--paused", "http://127.0.0.1:1/a")
        let pid = try #require(daemon.pid)
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        let outcome = try await daemon.dlctl(["wait", id.description, "--timeout", "0.5"], within: .seconds(20))
        #expect(outcome.status == .exited(75), "\(outcome)")
        #expect(!outcome.error.isEmpty)
    }

    @Test("a resource that changed while the task was paused is fetched anew, never joined")
    func changed() async throws {
        let old = Resource(size: 3 * mebibyte, seed: 1)
        var new = Resource(size: 3 * mebibyte, seed: 2)
        new.entityTag = "\"new\""
        let server = try ScriptedServer([
            "/file": [.drip(old, bytesPerSecond: Int(2 * mebibyte)), .serve(new)]
        ])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/file"))
        try await daemon.state(of: id, "to reach 1 MiB") { $0.bytesDone >= mebibyte }
        #expect(try await daemon.dlctl("pause", id.description).succeeded)
        #expect(try await daemon.dlctl("resume", id.description).succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(new.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }
}
