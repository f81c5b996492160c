import ControlProtocol
import FoundationEssentials
import Synchronization
import TaskModel
import TestSupport
import Testing

/// `dlctl status`, and `dlctl` without a command, against a running daemon.
@Suite("The state of the daemon", .serialized, .timeLimit(.minutes(2)))
struct StatusTests {
    @Test("the state of the daemon has limits, disks and hosts; a bare dlctl shows it with what runs")
    func status() async throws {
        let daemon = try await DaemonProcess.started(
            quickRetries
                + "limits: {upload-rate: 3M, active-tasks: 5}\nschedule: [{from: \"00:00\", to: \"24:00\", download-rate: 2M}]\n"
        )
        let status: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
        let limits = try #require(status.limits)
        #expect(limits.downloadRate == 2 << 20 && limits.downloadSource == "schedule" && limits.activeTasks == 5)
        #expect(limits.uploadRate == 3 << 20 && limits.window?.days == "mon-sun" && limits.window?.until == nil)
        let disk = try #require(status.disks?.first)
        #expect(disk.path == daemon.downloads && (disk.free ?? 0) > 0 && disk.minimumFree == 256 << 20)
        #expect(status.hosts == [])
        let bare = try await daemon.dlctl()
        #expect(bare.status == .exited(0), "\(bare)")
        #expect(bare.output.contains("2.0 MiB/s down (schedule mon-sun 00:00-24:00)"))
        #expect(bare.output.contains("no task runs"))
        let json = try await daemon.dlctl("--json")
        #expect(json.output.hasPrefix(#"{"status":{"#) && json.output.contains(#""tasks":[]"#), "\(json)")
        try await daemon.terminate()
        let none = try await daemon.dlctl()
        #expect(none.status == .exited(69) && none.error.contains("dlctl --help"), "\(none)")
    }

    @Test("a state that is asked for all the time shows each command and each start once it is answered")
    func freshness() async throws {
        let server = try ScriptedServer(["/a": [.hang]])
        let daemon = try await DaemonProcess.started()
        let isOver = Mutex(false)
        async let hammered = onThread {
            var count = 0
            while !isOver.withLock({ $0 }) {
                let _: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
                count += 1
            }
            return count
        }
        defer { isOver.withLock { $0 = true } }
        func tasks() throws -> [String: Int] {
            let status: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
            return status.tasks.filter { $0.value > 0 }
        }
        for round in 1...10 {
            let id = try await daemon.add("--paused", server.url("/a"))
            #expect(try tasks() == ["paused": round])
            #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
            try await daemon.state(of: id, "to be active") { $0.state == .active }
            #expect(try tasks()["active"] == 1)
            #expect(try await daemon.dlctl("pause", "\(id)").succeeded)
            #expect(try tasks() == ["paused": round])
            let rate = "\(round)M"
            #expect(try await daemon.dlctl("limit", "--download", rate).succeeded)
            let status: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
            #expect(status.limits?.downloadRate == Int64(round) << 20)
        }
        isOver.withLock { $0 = true }
        #expect(try await hammered > 100)
    }

    @Test("a host on hold is told with the reason and the time")
    func heldHosts() async throws {
        let server = try ScriptedServer(["/a": [.status(503, headers: ["Retry-After: 60"])]])
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add(server.url("/a"))
        try await eventually(that: "the host is on hold") {
            let status: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
            return status.hosts?.first?.reason == "retry-after"
        }
        let text = try await daemon.dlctl("status").output
        #expect(text.contains("on hold") && text.contains("asked for a delay, next try in"), "\(text)")
    }
}
