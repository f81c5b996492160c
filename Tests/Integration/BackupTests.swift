import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// `dlctl backup` against a running daemon, and daemons that begin with the backup.
@Suite("Backup and restore", .serialized, .timeLimit(.minutes(10)))
struct BackupTests {
    private static let configuration = quickRetries + "limits: {active-tasks: 4}\n"
    private static let (alice, service): (uid_t, uid_t) = (61_101, 61_100)

    private struct Saved: Decodable {
        var path: String
        var bytes: Int64
        var tasks: Int
        var lastEvent: Int64
        var journal: String
    }

    private func saved(_ outcome: Outcome) throws -> Saved {
        try #require(outcome.succeeded, "\(outcome.error)")
        return try JSONDecoder().decode(Saved.self, from: Data(outcome.output.utf8))
    }

    /// Returns a daemon that has the backup in its state directory, and has not been started.
    private func restored(from backup: String) throws -> DaemonProcess {
        let daemon = try DaemonProcess(configuration: Self.configuration)
        try FileManager.default.copyItem(atPath: backup, toPath: daemon.stateDirectory + "/dld.db")
        return daemon
    }

    /// Adds paused tasks with long URLs.
    private func fill(_ daemon: DaemonProcess, _ count: Int) async throws {
        let tail = String(repeating: "a", count: 300)
        let urls = (0..<count).map { "https://example.invalid/\($0)/\(tail)\n" }.joined()
        let added = try await daemon.dlctl(["add", "--paused", "--input", "-"], input: urls, within: .seconds(300))
        try #require(added.succeeded, "\(added.error)")
    }

    private func drafts(_ daemon: DaemonProcess) -> [String] {
        TemporaryDirectory.names(in: daemon.stateDirectory).filter { $0.contains("backing-up") }
    }

    @Test("a backup amid downloads and adds has every acknowledged task, and another daemon completes them")
    func restore() async throws {
        let resource = Resource(size: 3 * mebibyte)
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: mebibyte, bytesPerSecond: 1 << 20)],
            // The first daemon never gets past the first mebibyte.
            "/running": [.drip(resource, after: mebibyte, bytesPerSecond: 1), .serve(resource)],
        ])
        let place = try TemporaryDirectory()
        let daemon = try await DaemonProcess.started(Self.configuration)
        let file = place.file("copy.db")
        let running = try await daemon.add("-o", "running", "--connections", "1", server.url("/running"))
        let paused = try await daemon.add("--paused", "--batch", "b", "--key", "k", server.url("/f"))
        try await daemon.state(of: running, "to have bytes") { $0.bytesDone > 0 }
        let adding = Task {
            for number in 0..<100 where !Task.isCancelled {
                _ = try await daemon.add("-o", "later-\(number)", server.url("/f"))
            }
        }
        try await Task.sleep(for: .milliseconds(300))
        let acknowledged = try daemon.tasks().map(\.id)
        let backup = try saved(await daemon.dlctl("backup", "--json", file))
        adding.cancel()
        _ = try? await adding.value
        #expect(backup.path == file && backup.bytes == size(of: file) && backup.tasks >= acknowledged.count)
        try await daemon.kill()

        let next = try restored(from: file)
        try await next.start()
        let tasks = try next.tasks()
        #expect(tasks.count == backup.tasks)
        #expect(Set(tasks.map(\.id)).isSuperset(of: acknowledged))
        #expect(tasks.first { $0.id == paused }?.key == "k")
        #expect(try await next.dlctl("resume", "\(paused)").succeeded)
        for task in tasks { #expect(try await next.settled(task.id).state == .completed) }
        #expect(resource.difference(fromFileAt: next.path("running")) == nil)
        #expect(try await next.add(server.url("/f")).rawValue > (tasks.last?.id.rawValue ?? 0))
        #expect(TemporaryDirectory.names(in: place.path) == ["copy.db"])
    }

    @Test("a reader of events goes on where the journals fork, and is told if it had read further")
    func events() async throws {
        let daemon = try await DaemonProcess.started(Self.configuration)
        let place = try TemporaryDirectory()
        for _ in 0..<3 { _ = try await daemon.add("--paused", "https://example.invalid/a") }
        let backup = try saved(await daemon.dlctl("backup", "--json", place.file("b")))
        for _ in 0..<3 { _ = try await daemon.add("--paused", "https://example.invalid/lost") }
        let read: EventsListResult = try daemon.call(.eventsList, EventsListParameters())
        #expect(read.last > backup.lastEvent && read.journal != backup.journal)
        try await daemon.terminate()

        let next = try restored(from: place.file("b"))
        try await next.start()
        _ = try await next.add("--paused", "https://example.invalid/new")
        func events(after sequence: Int64) throws -> EventsListResult {
            try next.call(
                .eventsList,
                EventsListParameters(selection: .init(after: sequence, journal: read.journal)))
        }
        let fork = try events(after: backup.lastEvent)
        #expect(fork.journal == backup.journal && fork.events.map(\.type) == [.added])
        let further = try events(after: read.last)
        #expect(further.events.map(\.type) == [.gap, .added])
    }

    @Test("with 100,000 tasks the daemon answers and accepts tasks while it makes and sends a backup")
    func large() async throws {
        let daemon = try await DaemonProcess.started(Self.configuration)
        let place = try TemporaryDirectory()
        try await fill(daemon, 100_000)
        let clock = ContinuousClock()
        let begin = clock.now
        let saving = Task { try await daemon.dlctl("backup", "--json", place.file("b")) }
        try await eventually(that: "the copy has begun", every: .milliseconds(1)) { !drafts(daemon).isEmpty }
        var slowest = Duration.zero
        var count = 0
        while !drafts(daemon).isEmpty || !exists(place.file("b")) {
            let start = clock.now
            let _: DaemonStatus = try daemon.call(.daemonStatus, NoParameters())
            let _: TaskAddResult = try daemon.call(
                .taskAdd, TaskAddParameters(tasks: [TaskSpecification(url: "https://example.invalid/more")]))
            slowest = max(slowest, clock.now - start)
            count += 1
            guard clock.now - begin < .seconds(120) else { break }
        }
        let backup = try saved(await saving.value)
        let duration = clock.now - begin
        #expect(backup.tasks >= 100_000 && backup.bytes > 40 * mebibyte)
        #expect(count >= 3, "\(count) calls in \(duration)")
        #expect(slowest < .seconds(2), "\(slowest), while the backup took \(duration)")
        let checked = try await run(["sqlite3", place.file("b"), "PRAGMA integrity_check; SELECT count(*) FROM task"])
        #expect(checked.lines == ["ok", "\(backup.tasks)"])
    }

    @Test("a daemon that is killed while it makes or sends a backup leaves no file, and goes on")
    func killedDaemon() async throws {
        let daemon = try await DaemonProcess.started(Self.configuration)
        let place = try TemporaryDirectory()
        try await fill(daemon, 30_000)
        for delay in [0, 30, 100, 200, 400] {
            let saving = Task { try await daemon.dlctl("backup", place.file("b")) }
            try await eventually(that: "the copy has begun", every: .milliseconds(1)) {
                !drafts(daemon).isEmpty || exists(place.file("b"))
            }
            try await Task.sleep(for: .milliseconds(delay))
            try await daemon.kill()
            let outcome = try await saving.value
            if outcome.status == .exited(0) {
                #expect(unlink(place.file("b")) == 0)
            } else {
                #expect(outcome.status == .exited(69) && outcome.error.contains("connection"), "\(outcome)")
                #expect(TemporaryDirectory.names(in: place.path) == [])
            }
            try await daemon.start()
            #expect(drafts(daemon) == [])
            #expect(try daemon.call(.taskCount, TaskCountParameters(), as: TaskCountResult.self).tasks == 30_000)
        }
        #expect(try await daemon.dlctl("backup", place.file("b")).succeeded)
    }

    @Test("a daemon that is told to end makes no client wait for a backup")
    func endingDaemon() async throws {
        let daemon = try await DaemonProcess.started(Self.configuration)
        let place = try TemporaryDirectory()
        try await fill(daemon, 30_000)
        let saving = Task { try await daemon.dlctl("backup", place.file("b")) }
        try await eventually(that: "the copy has begun", every: .milliseconds(1)) { !drafts(daemon).isEmpty }
        #expect(try await daemon.terminate() == .exited(0))
        let outcome = try await saving.value
        if outcome.status != .exited(0) { #expect(TemporaryDirectory.names(in: place.path) == []) }
        try await daemon.start()
        #expect(drafts(daemon) == [])
    }

    @Test("a killed dlctl leaves no file, and the daemon frees its copy", arguments: [SIGKILL, SIGINT])
    func killedClient(signal: Int32) async throws {
        let daemon = try await DaemonProcess.started(Self.configuration)
        let place = try TemporaryDirectory()
        try await fill(daemon, 30_000)
        for delay in [0, 20, 50, 100, 200] {
            let client = try ChildProcess(
                [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "backup", place.file("b")])
            try await eventually(that: "the copy has begun", every: .milliseconds(1)) {
                !drafts(daemon).isEmpty || exists(place.file("b"))
            }
            try await Task.sleep(for: .milliseconds(delay))
            client.kill(signal)
            let status = try await client.wait()
            if status == .exited(0) {
                #expect(unlink(place.file("b")) == 0)
            } else {
                #expect(TemporaryDirectory.names(in: place.path) == [], "\(status)")
            }
        }
        try await eventually(that: "the copies are gone") { try drafts(daemon).isEmpty && copies(daemon) == 0 }
        #expect(try await daemon.dlctl("backup", place.file("b")).succeeded)
    }

    /// Returns the number of nameless copies that the daemon has open.
    private func copies(_ daemon: DaemonProcess) throws -> Int {
        let directory = "/proc/\(try #require(daemon.pid))/fd"
        return TemporaryDirectory.names(in: directory).count { name in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(name)"))?
                .contains("backing-up") == true
        }
    }

    @Test(
        "only administrators may back up a daemon of several users, into their own directories",
        .enabled(if: isRoot, "needs processes of several users"))
    func permissions() async throws {
        let daemon = try DaemonProcess(
            configuration: "control: {mode: 0666}\n",
            prefix: ["setpriv", "--reuid", "\(Self.service)", "--regid", "\(Self.service)", "--clear-groups", "--"],
            mode: 0o755)
        for path in [daemon.downloads, daemon.stateDirectory, daemon.directory.path] {
            try #require(chown(path, Self.service, Self.service) == 0)
        }
        try await daemon.start()
        let place = try TemporaryDirectory(mode: 0o777)
        func dlctl(_ uid: uid_t, _ arguments: String...) async throws -> Outcome {
            try await run(
                ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
                    + [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments)
        }
        let refused = try await dlctl(Self.alice, "backup", place.file("alice"))
        #expect(refused.status == .exited(77) && refused.error.contains("every user's tasks and passwords"))
        for method in ["daemon.backup", "backup.read"] {
            let raw = try await dlctl(Self.alice, "rpc", method, method == "backup.read" ? #"{"offset":0}"# : "{}")
            #expect(raw.status == .exited(77), "\(raw)")
        }
        #expect(TemporaryDirectory.names(in: place.path) == [])
        // The daemon cannot enter this directory.
        let closed = try TemporaryDirectory()
        #expect(try await dlctl(0, "backup", closed.file("root")).succeeded)
        var status = stat()
        try #require(stat(closed.file("root"), &status) == 0)
        #expect(status.st_uid == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try await dlctl(Self.service, "backup", place.file("service")).succeeded)
    }

    @Test(
        "a place that cannot be written, and a disk that is full, are named, and nothing is left there",
        .enabled(if: isRoot, "needs mount"))
    func places() async throws {
        let daemon = try await DaemonProcess.started(Self.configuration)
        try await fill(daemon, 5_000)
        let place = try TemporaryDirectory()
        let small = try place.makeDirectory("small")
        let disk = try await Mount.tmpfs(at: small, bytes: mebibyte)
        let full = try await daemon.dlctl("--json", "backup", small + "/b")
        #expect(full.status == .exited(1) && full.error.contains(#""code":"disk-full""#), "\(full)")
        #expect(TemporaryDirectory.names(in: small) == [])
        #expect(try await run(["mount", "-o", "remount,ro", small]).succeeded)
        let readOnly = try await daemon.dlctl("backup", small + "/b")
        #expect(readOnly.status == .exited(1) && readOnly.error.contains("Read-only file system"), "\(readOnly)")
        try await disk.unmount()
        let again = try await daemon.dlctl("backup", daemon.configurationFile)
        #expect(again.status == .exited(1) && again.error.contains("--force"), "\(again)")
    }

    @Test(
        "a state directory without room for a copy is left alone, and says how much is needed",
        .enabled(if: isRoot, "needs mount"))
    func room() async throws {
        let place = try TemporaryDirectory()
        let state = try place.makeDirectory("state")
        let disk = try await Mount.tmpfs(at: state, bytes: 64 * mebibyte)
        let daemon = try await DaemonProcess.started(Self.configuration, stateDirectory: state)
        try await fill(daemon, 5_000)
        var information = statvfs()
        try #require(statvfs(state, &information) == 0)
        let free = Int64(information.f_bavail) * Int64(information.f_frsize)
        try Resource(size: free - 9 * mebibyte).write(to: "\(state)/ballast")
        let refused = try await daemon.dlctl("backup", place.file("b"))
        #expect(refused.status == .exited(1) && refused.error.contains("no room for a copy"), "\(refused)")
        #expect(!exists(place.file("b")) && drafts(daemon).isEmpty)
        #expect(unlink("\(state)/ballast") == 0)
        #expect(try await daemon.dlctl("backup", place.file("b")).succeeded)
        try await daemon.terminate()
        try await disk.unmount()
    }
}
