import Glibc
import TaskModel
import TestSupport
import Testing

/// What tasks return to after a pause, and what holds on hosts mean to them.
@Suite("Scheduled tasks and pauses", .serialized, .timeLimit(.minutes(2)))
struct ScheduledTaskTests {
    @Test("F84: a wide pause and its end leave start times, dependencies and earlier pauses; now means now")
    func pauses() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let daemon = try await DaemonProcess.started()
        let later = try await daemon.add("--start-at", "+8h", "-o", "later", server.url("/a"))
        let year = try await daemon.add("--start-at", "2030-01-01", "-o", "year", server.url("/a"))
        let follower = try await daemon.add("--after-task", "\(later)", "-o", "follower", server.url("/a"))
        let own = try await daemon.add("--paused", "-o", "own", server.url("/a"))
        let all = [later, year, follower, own]
        func reasons() throws -> [TaskReason?] { try all.map { try daemon.task($0).reason } }
        let before = try reasons()
        let start = try daemon.task(later).notBefore
        #expect(before == [.scheduled, .scheduled, .dependency, .user])
        #expect(try await daemon.dlctl("pause", "--all", "--yes").output == "3 tasks paused\n")
        #expect(try reasons() == [.user, .user, .user, .user])
        #expect(try await daemon.dlctl("resume", "--all", "--yes").output == "3 tasks resumed\n")
        #expect(try reasons() == before && daemon.task(later).notBefore == start)

        let kept = try await daemon.dlctl("resume", "\(later)")
        #expect(kept.succeeded && kept.output.contains("dlctl resume \(later) --now starts it"), "\(kept)")
        #expect(server.requests().isEmpty)
        #expect(try await daemon.dlctl("resume", "\(later)", "--now").output == "1 task resumed\n")
        #expect(try await daemon.settled(later).state == .completed)
        #expect(try await daemon.settled(follower).state == .completed)
        #expect(try await daemon.dlctl("set", "\(year)", "--start-at", "now").succeeded)
        #expect(try await daemon.settled(year).state == .completed)
        #expect(try await daemon.dlctl("resume", "--all", "--yes").output == "1 task resumed\n")
        #expect(try await daemon.settled(own).state == .completed)
    }

    @Test("F83: a resumption that ends the hold of a host says so; a paused task goes back behind it")
    func holds() async throws {
        let server = try ScriptedServer([
            "/busy": [.status(503, headers: ["Retry-After: 3600"]), .status(200, body: "x")],
            "/a": [.status(200, body: "a")],
        ])
        let daemon = try await DaemonProcess.started()
        let busy = try await daemon.add(server.url("/busy"))
        _ = try await daemon.state(of: busy, "to wait") { $0.state == .waiting }
        let other = try await daemon.add(server.url("/a"))
        #expect(try daemon.task(other).reason == .hostLimit)
        #expect(try await daemon.dlctl("pause", "\(other)").succeeded)
        #expect(try await daemon.dlctl("resume", "\(other)").output == "1 task resumed\n")
        #expect(try daemon.task(other).reason == .hostLimit)
        let resumed = try await daemon.dlctl("resume", "\(busy)")
        #expect(resumed.output == "1 task resumed\n\(server.url("")) is no longer on hold\n", "\(resumed)")
        #expect(try await daemon.settled(busy).state == .completed)
        #expect(try await daemon.settled(other).state == .completed)
    }

    @Test("F85: after a restart with another download directory, path says where the files will be")
    func directory() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let daemon = try await DaemonProcess.started()
        let done = try await daemon.add(server.url("/a"))
        #expect(try await daemon.settled(done).state == .completed)
        let paused = try await daemon.add("--paused", server.url("/b"))
        let nested = try await daemon.add("--paused", "-d", "sub", "-o", "a", server.url("/a"))
        #expect(try await daemon.terminate() == .exited(0))
        let place = try daemon.directory.makeDirectory("elsewhere")
        try daemon.launch(extra: ["--download-directory", place])
        try await eventually(that: "the paths follow") {
            (try? daemon.task(paused).path) == "\(place)/b"
        }
        #expect(try daemon.task(nested).path == "\(place)/sub/a")
        #expect(try daemon.task(done).path == daemon.path("a"))
        #expect(try await daemon.dlctl("resume", "\(nested)").succeeded)
        #expect(try await daemon.settled(nested).path == "\(place)/sub/a" && exists("\(place)/sub/a"))
    }

    @Test(
        "F85: a restart with another directory tells of the part files in the earlier one, which can be moved",
        arguments: [true, false])
    func begun(isMoved: Bool) async throws {
        let resource = Resource(size: 8 * mebibyte)
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: 2_000_000)])
        try nginx.publish(resource, as: "f")
        let daemon = try await DaemonProcess.started(quickRetries)
        let id = try await daemon.add("--connections", "1", nginx.url("/slow/f"))
        try await daemon.state(of: id, "to have bytes") { $0.bytesDone > mebibyte }
        #expect(try await daemon.dlctl("pause", "\(id)").succeeded)
        let before = try daemon.task(id)
        #expect(try await daemon.terminate() == .exited(0))
        let place = try daemon.directory.makeDirectory("elsewhere")
        let part = try #require(daemon.partFiles.first)
        if isMoved { #expect(rename(daemon.path(part), "\(place)/\(part)") == 0) }
        try daemon.launch(extra: ["--download-directory", place])
        try await eventually(that: "the daemon answers") { (try? daemon.task(id)) != nil }
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        let task = try await daemon.settled(id)
        #expect(task.state == .completed)
        #expect(task.path == "\(place)/f" && resource.difference(fromFileAt: "\(place)/f") == nil)
        #expect((task.bytesFetched < resource.size + before.bytesDone / 2) == isMoved, "\(task.bytesFetched)")
        #expect(
            daemon.log.contains(
                "the part file of 1 download was in \(daemon.downloads) and is looked for in the new directory"),
            "\(daemon.log)")
    }
}
