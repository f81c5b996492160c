import Glibc
import TaskModel
import TestSupport
import Testing

/// The daemon as the first process of a container, without an init system.
@Suite("In a container", .timeLimit(.minutes(2)), .needsRoot)
struct ContainerTests {
    /// A command that makes the daemon the first process of a namespace of processes.
    private static let first = ["unshare", "--pid", "--fork", "--kill-child"]

    /// Returns the id of the daemon outside of its namespace.
    private func processID(in child: ChildProcess) async throws -> String {
        let found = try await run(["pgrep", "--parent", "\(child.pid)", "--exact", "dld"])
        return try #require(found.lines.first, "\(found.error)")
    }

    @Test("a process whose parent has ended is removed when it ends", arguments: [SIGKILL, SIGTERM])
    func orphans(signal: Int32) async throws {
        let daemon = try DaemonProcess()
        let child = try daemon.launch(under: Self.first)
        try await eventually(that: "it answers", within: .seconds(20)) { daemon.answers }
        let pid = try await processID(in: child)
        let script = "sleep 1000 & sleep 1001 &"
        let started = try await run(["nsenter", "--target", pid, "--pid", "sh", "-c", script])
        #expect(started.succeeded, "\(started.error)")
        let list = ["ps", "--ppid", pid, "-o", "comm="]
        try await eventually(that: "they are the daemon's children", within: .seconds(20)) {
            try await run(list).output.split(separator: "\n").count { $0.hasPrefix("sleep") } == 2
        }
        _ = try await run(["pkill", "-\(signal)", "--parent", pid, "--exact", "sleep"])
        try await eventually(that: "none is left, not even defunct", within: .seconds(20)) {
            try await !run(list).output.contains("sleep")
        }
        #expect(daemon.answers)
    }

    @Test("SIGTERM and SIGINT end the daemon with all progress recorded", arguments: [SIGTERM, SIGINT])
    func ends(signal: Int32) async throws {
        let resource = Resource(size: 1 << 20, seed: 1)
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: 600_000, bytesPerSecond: 1), .serve(resource)]
        ])
        let daemon = try DaemonProcess()
        let child = try daemon.launch(under: Self.first)
        try await eventually(that: "it answers", within: .seconds(20)) { daemon.answers }
        let id = try await daemon.add(server.url("/f"))
        _ = try await daemon.state(of: id, "has bytes") { $0.bytesDone >= 600_000 }
        let pid = try await processID(in: child)
        _ = try await run(["kill", "-\(signal)", pid])
        #expect(try await child.wait(within: .seconds(20)) == .exited(0), "\(child.standardError)")
        try await daemon.start()
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(server.requests(for: "/f").last?.header("range")?.hasPrefix("bytes=6") == true)
    }

    @Test("without /proc the programs say so, and do not run with the defaults", arguments: ["dld", "dlctl"])
    func noProcessInformation(program: String) async throws {
        let outcome = try await run([
            "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh",
            DaemonProcess.program(program), "--version",
        ])
        #expect(outcome.status == .exited(64))
        #expect(outcome.error.contains("mount /proc"), "\(outcome.error)")
    }

    @Test("SIGTERM ends a daemon that is still starting")
    func endsEarly() async throws {
        let daemon = try DaemonProcess()
        // The daemon waits for the end of its configuration, which comes through a pipe.
        let pipe = daemon.configurationFile
        #expect(unlink(pipe) == 0 && mkfifo(pipe, 0o600) == 0)
        let child = try daemon.launch(under: Self.first)
        let writer = try await eventually(have: "it reads the pipe", within: .seconds(20)) { () -> Int32? in
            let descriptor = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return descriptor < 0 ? nil : descriptor
        }
        defer { close(writer) }
        _ = try await run(["kill", "-TERM", try await processID(in: child)])
        #expect(try await child.wait(within: .seconds(20)) == .exited(128 + SIGTERM), "\(child.standardError)")
    }
}
