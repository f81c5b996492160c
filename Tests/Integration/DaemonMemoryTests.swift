import FoundationEssentials
import TaskModel
import TestSupport
import Testing

@Suite("The daemon's memory", .serialized, .timeLimit(.minutes(3)))
struct DaemonMemoryTests {
    @Test("500 slow downloads cost less than 64 KiB each, however much of them has come, and nothing once removed")
    func slowDownloads() async throws {
        let count = 500
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: 16_000)])
        try nginx.publish(Resource(size: 4 << 20), as: "f")
        let daemon = try await DaemonProcess.started(
            """
            limits: {active-tasks: \(count), connections-per-host: \(count), connections-per-task: 1}
            disk: {min-free: 0}

            """)
        // Allocations that the first downloads cause are excluded from the cost of each.
        try await run(20, of: nginx, named: "first", on: daemon, upTo: 1)
        let before = try kibibytes("RssAnon", of: daemon)
        try await run(count - 20, of: nginx, named: "other", on: daemon, upTo: 150_000)
        let each = try (kibibytes("RssAnon", of: daemon) - before) / (count - 20)
        #expect(each < 64, "\(each) KiB each")
        let removed = try await daemon.dlctl("remove", "--all")
        #expect(removed.succeeded, "\(removed.error)")
        // The remaining memory belongs to the store and the control socket.
        var left = Int.max
        do {
            try await eventually(that: "memory is given back", within: .seconds(20), every: .milliseconds(500)) {
                left = try kibibytes("RssAnon", of: daemon) - before
                return left < each * count / 2
            }
        } catch {
            Issue.record("\(left) KiB are left of \(each * count)")
        }
    }

    @Test("an idle daemon has mapped little of its program")
    func idle() async throws {
        let daemon = try DaemonProcess()
        let child = try daemon.launch()
        try await eventually(that: "it is ready", within: .seconds(20)) { child.standardError.contains("ready") }
        // Before they are removed, the pages that its start has touched are 50 MiB.
        try await eventually(that: "less than 30 MiB are mapped", within: .seconds(10)) {
            try kibibytes("RssFile", of: daemon) < 30 << 10
        }
    }

    /// Returns a size from proc_pid_status(5).
    private func kibibytes(_ name: String, of daemon: DaemonProcess) throws -> Int {
        let pid = try #require(daemon.pid)
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(name + ":") })
        return try #require(line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) })
    }

    /// Adds `count` downloads and waits until each has received `bytes` bytes.
    private func run(_ count: Int, of nginx: Nginx, named name: String, on daemon: DaemonProcess, upTo bytes: Int64)
        async throws
    {
        let list = (0..<count).map { "\(nginx.url("/slow/f"))?\(name)=\($0)\n  out=\(name)-\($0)\n" }.joined()
        let added = try await daemon.dlctl(["add", "--input", "-"], input: list)
        #expect(added.succeeded, "\(added.error)")
        let ids = Set(added.lines)
        #expect(ids.count == count)
        try await eventually(that: "each has brought \(bytes) bytes", every: .milliseconds(500)) {
            let list = try await daemon.dlctl("list", "--json")
            let tasks = try JSONDecoder().decode([TaskStatus].self, from: Data(list.output.utf8))
            return tasks.allSatisfy { !ids.contains($0.id.description) || $0.bytesFetched >= bytes }
        }
    }
}
