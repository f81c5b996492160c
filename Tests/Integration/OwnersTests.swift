import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Several real users of one daemon, with many tasks and with few.
@Suite("Owners beside each other", .serialized, .timeLimit(.minutes(3)), .enabled(if: isRoot))
struct OwnersTests {
    private static let (one, other) = (UInt32(64_101), UInt32(64_102))
    private static let shared = "control: {mode: 0666}\n"

    private func dlctl(_ uid: UInt32, _ daemon: DaemonProcess, _ arguments: String...) async throws -> Outcome {
        let client = try DaemonProcess.program("dlctl")
        let user = ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
        return try await run(user + [client, "--socket", daemon.socket] + arguments, within: .seconds(60))
    }

    private func daemon(_ configuration: String) async throws -> DaemonProcess {
        let daemon = try DaemonProcess(configuration: configuration + Self.shared, mode: 0o755)
        try await daemon.start()
        return daemon
    }

    @Test("A31: 80 tasks of one that are to start now hold up neither another's nor take all places beside the slots")
    func urgent() async throws {
        let slow = Resource(size: 4 * mebibyte, seed: 3)
        let server = try ScriptedServer([
            "/slow": [.drip(slow, bytesPerSecond: 20_000)], "/warm": [.serve(Resource(size: 10))],
            "/quick": [.serve(Resource(size: 1_000))],
        ])
        let daemon = try await daemon("limits: {active-tasks: 4, connections-per-host: 64, connections-per-task: 1}\n")
        #expect(try await daemon.dlctl("add", "--wait", server.url("/warm")).succeeded)
        let input = try daemon.directory.write(
            String(repeating: server.url("/slow") + "\n", count: 80), to: "list.txt")
        #expect(chmod(input, 0o644) == 0)
        let added = try await dlctl(Self.one, daemon, "add", "--now", "--input", input)
        #expect(added.succeeded, "\(added)")
        try await eventually(that: "its tasks run") { try daemon.tasks().filter { ($0.rate ?? 0) > 0 }.count >= 4 }
        let done = try await dlctl(Self.other, daemon, "add", "--now", "--wait", server.url("/quick"))
        #expect(done.succeeded, "\(done)")
        let running = try daemon.tasks().filter { $0.state == .active && $0.owner == Self.one }
        #expect(running.count == 4, "as many as there are slots: its share of what is urgent is among them")
    }

    @Test("A31: no more tasks of one owner run than the limit, urgent ones included, and another's run beside them")
    func activePerOwner() async throws {
        let slow = Resource(size: 4 * mebibyte, seed: 3)
        let server = try ScriptedServer([
            "/slow": [.drip(slow, bytesPerSecond: 20_000)], "/quick": [.serve(Resource(size: 1_000))],
        ])
        let daemon = try await daemon("limits: {active-tasks: 8, active-tasks-per-owner: 2, connections-per-task: 1}\n")
        let input = try daemon.directory.write(
            String(repeating: server.url("/slow") + "\n", count: 10), to: "list.txt")
        #expect(chmod(input, 0o644) == 0)
        #expect(try await dlctl(Self.one, daemon, "add", "--input", input).succeeded)
        #expect(try await dlctl(Self.one, daemon, "add", "--now", server.url("/slow")).succeeded)
        try await eventually(that: "two run") { try daemon.tasks().filter { ($0.rate ?? 0) > 0 }.count == 2 }
        #expect(try await dlctl(Self.other, daemon, "add", "--wait", server.url("/quick")).succeeded)
        let active = try daemon.tasks().filter { $0.state == .active }
        #expect(active.count == 2 && active.allSatisfy { $0.owner == Self.one })
        #expect(try await dlctl(Self.one, daemon, "cancel", "\(active[0].id)").succeeded)
        try await eventually(that: "the next one takes its place") {
            let now = try daemon.tasks().filter { $0.state == .active }
            return now.count == 2 && now != active
        }
    }

    @Test("A31: the history and the events of one are his own, however much another has")
    func history() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 10))]])
        let daemon = try await daemon("history: {count: 5}\nevents: {count: 12}\n")
        let own = try await dlctl(Self.other, daemon, "add", "--wait", server.url("/f"), server.url("/f"))
        #expect(own.succeeded, "\(own)")
        let input = try daemon.directory.write(String(repeating: server.url("/f") + "\n", count: 40), to: "list.txt")
        #expect(chmod(input, 0o644) == 0)
        let list = try await dlctl(Self.one, daemon, "add", "--wait", "--input", input)
        #expect(list.succeeded, "\(list)")
        func count(_ owner: UInt32) throws -> Int { try daemon.tasks().filter { $0.owner == owner }.count }
        try await eventually(that: "the other's history is as long as it may be") { try count(Self.one) == 5 }
        #expect(try count(Self.other) == 2)
        try await eventually(that: "its events are as many as they may be") {
            try await events(daemon)["\(Self.one)"] == 12
        }
        #expect(try await events(daemon)["\(Self.other)"] == 6)
    }

    @Test("A17, A31: thousands of one's events, with readers that never read, keep no event from another's readers")
    func unreadEvents() async throws {
        let count = 1_500
        let server = try ScriptedServer(["/quick": [.serve(Resource(size: 10))]])
        let receiver = try ScriptedServer(["/h": [.status(200)]])
        let daemon = try await daemon("notify: [{url: '\(receiver.url("/h"))', on: [updated, completed]}]\n")
        let place = try TemporaryDirectory(mode: 0o777)
        let input = try daemon.directory.write(
            String(repeating: "http://127.0.0.1:1/f\n", count: count), to: "list.txt")
        #expect(chmod(input, 0o644) == 0)
        #expect(try await dlctl(Self.one, daemon, "add", "--paused", "--input", input).succeeded)
        let connections = """
            import os, socket, sys, time
            user = int(sys.argv[2])
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            request = b'{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"after":0}}\\n'
            sockets = [socket.socket(socket.AF_UNIX) for _ in range(32)]
            for s in sockets:
                s.connect(sys.argv[1])
                s.sendall(request)
            print("subscribed", flush=True)
            time.sleep(600)
            """
        let unread = try ChildProcess(["python3", "-c", connections, daemon.socket, "\(Self.one)"])
        let program = try DaemonProcess.program("dlctl")
        let events = [program, "--socket", daemon.socket, "events"]
        let stuck = try child(Self.one, events + ["--after", "0", "--exec", "sleep 30"])
        try await eventually(that: "nobody reads") { unread.standardOutput.contains("subscribed") }
        let follower = try child(Self.other, events + ["--follow", "--json", "--on", "completed"])
        let log = place.file("log")
        let hook = try child(
            Self.other,
            events + ["--cursor", "h", "--on", "completed", "--exec", "echo \"$DLD_ID $DLD_OWNER\" >>'\(log)'"],
            environment: ["XDG_STATE_HOME": place.path])
        try await eventually(that: "the hook waits for events") { exists(place.file("dld/hooks/h")) }
        for priority in ["high", "low"] {
            let changed = try await dlctl(
                Self.one, daemon, "rpc", "task.update",
                "{\"filter\":{},\"changes\":{\"priority\":\"\(priority)\"}}")
            #expect(changed.output.contains("\"changed\":\(count)"), "\(changed)")
        }
        let quick = server.url("/quick")
        let done = try await dlctl(Self.other, daemon, "add", "--wait", quick, quick, quick)
        #expect(done.succeeded, "\(done)")
        try await eventually(that: "his follower has all three") {
            follower.standardOutput.split(separator: "\n").count == 3
        }
        try await eventually(that: "his commands have run") {
            (try? text(of: log))?.split(separator: "\n").count == 3
        }
        #expect(try text(of: log).split(separator: "\n").allSatisfy { $0.hasSuffix(" \(Self.other)") })
        try await eventually(that: "the receiver has been told of his three") {
            let messages = receiver.requests().map { String(decoding: $0.body, as: UTF8.self) }
            return messages.count { $0.contains("\"owner\":\(Self.other)") && $0.contains("\"completed\"") } >= 3
        }
        let tasks = try await dlctl(Self.other, daemon, "list", "--json")
        #expect(try JSONDecoder().decode([TaskStatus].self, from: Data(tasks.output.utf8)).count == 3)
        #expect(unread.poll() == nil && stuck.poll() == nil && follower.poll() == nil && hook.poll() == nil)
    }

    /// Starts a program as a user.
    private func child(
        _ uid: UInt32, _ arguments: [String], environment: [String: String?] = [:]
    ) throws -> ChildProcess {
        try ChildProcess(
            ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"] + arguments,
            environment: environment)
    }

    /// Returns the number of events in the journal by owner.
    private func events(_ daemon: DaemonProcess) async throws -> [String: Int] {
        let sql = "SELECT owner || ' ' || sum(count) FROM event GROUP BY owner"
        let found = try await run(["sqlite3", "-readonly", "\(daemon.stateDirectory)/dld.db", sql])
        let pairs = found.lines.map { $0.split(separator: " ").map { String($0) } }.filter { $0.count == 2 }
        return Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], Int($0[1]) ?? 0) })
    }
}
