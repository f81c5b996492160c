import CLinux
import Foundation
import Glibc
import TaskModel
import TestSupport
import Testing

/// Uploads of files that their users open and pass to the daemon (SCM_RIGHTS), because the daemon cannot access them
/// itself.
@Suite(
    "Passed sources", .timeLimit(.minutes(2)), .enabled(if: getuid() == 0, "needs processes of several users"))
struct PassedSourceTests {
    private static let (alice, bob, service): (uid_t, uid_t, uid_t) = (61_101, 61_102, 61_100)

    /// A daemon that runs as its own user, and a home directory of alice's that it cannot access.
    private struct Fixture {
        let daemon: DaemonProcess
        let server: ScriptedServer
        let resource = Resource(size: 300_000, seed: 9)
        let source: String

        init(_ answers: [ScriptedAnswer] = [.status(201)]) async throws {
            server = try ScriptedServer(["/in": answers])
            daemon = try DaemonProcess(
                configuration: "control: {mode: 0666}\nretry: {base-delay: 50ms}",
                prefix: ["setpriv", "--reuid", "\(service)", "--regid", "\(service)", "--clear-groups", "--"],
                mode: 0o755)
            for path in [daemon.downloads, daemon.stateDirectory, daemon.directory.path] {
                try #require(chown(path, service, service) == 0)
            }
            let home = try daemon.directory.makeDirectory("home")
            source = home + "/file"
            try resource.write(to: source)
            try #require(chown(home, alice, alice) == 0 && chmod(home, 0o700) == 0)
            try #require(chown(source, alice, alice) == 0 && chmod(source, 0o600) == 0)
            try await daemon.start()
        }

        func dlctl(_ uid: uid_t, _ arguments: String...) async throws -> Outcome {
            try await run(
                ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
                    + [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments)
        }

        /// Whether each received body equals the file.
        var bodies: [Bool] { server.requests(for: "/in").map { $0.body == resource.bytes } }
    }

    @Test("a file in a closed home is sent without any upload root, and closed afterwards")
    func closedHome() async throws {
        let fixture = try await Fixture()
        let outcome = try await fixture.dlctl(Self.alice, "upload", "--wait", fixture.source, fixture.server.url("/in"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(fixture.bodies == [true])
        try await eventually(that: "the daemon has closed the file") {
            try !openFiles(of: fixture.daemon).contains(fixture.source)
        }
        let refused = try await fixture.dlctl(Self.bob, "upload", fixture.source, fixture.server.url("/in"))
        #expect(refused.status == .exited(77), "\(refused)")
    }

    @Test("several attempts, a pause and a cancelled task use the file as it was passed")
    func attempts() async throws {
        let fixture = try await Fixture([.status(503), .status(201)])
        let added = try await fixture.dlctl(
            Self.alice, "upload", "--paused", fixture.source, fixture.server.url("/in"))
        let id = try #require(added.lines.first)
        // The file has been renamed by now.
        try #require(rename(fixture.source, fixture.source + ".moved") == 0)
        #expect(try await fixture.dlctl(Self.alice, "resume", id).succeeded)
        #expect(try await fixture.dlctl(Self.alice, "wait", id).succeeded)
        #expect(fixture.bodies.last == true && fixture.bodies.count == 2)
        let other = try await fixture.dlctl(
            Self.alice, "upload", "--paused", fixture.source + ".moved", fixture.server.url("/in"))
        #expect(try openFiles(of: fixture.daemon).contains(fixture.source + ".moved"))
        #expect(try await fixture.dlctl(Self.alice, "cancel", other.lines.first ?? "").succeeded)
        try await eventually(that: "the daemon has closed the file") {
            try !openFiles(of: fixture.daemon).contains(fixture.source + ".moved")
        }
    }

    @Test("a daemon that ends leaves no process behind")
    func processes() async throws {
        let daemon = try await DaemonProcess.started()
        for _ in 1...5 {
            let pid = try #require(daemon.pid)
            let children = try children(of: pid)
            #expect(children.count == 1, "the one that receives files")
            #expect(try await daemon.terminate() == .exited(0))
            #expect(children.allSatisfy { kill($0, 0) != 0 })
            try await daemon.start()
        }
    }

    @Test("after a kill the task waits for its file, says so, and resume passes it again")
    func killed() async throws {
        let fixture = try await Fixture()
        let added = try await fixture.dlctl(
            Self.alice, "upload", "--paused", fixture.source, fixture.server.url("/in"))
        let id = try #require(added.lines.first)
        try await fixture.daemon.kill()
        try await fixture.daemon.start()
        // Root cannot pass the file: a file passed by root would be sent where alice chose.
        #expect(try await fixture.dlctl(0, "resume", id).succeeded)
        try await eventually(that: "the task waits for its file") {
            let shown = try await fixture.dlctl(Self.alice, "show", id).output
            return shown.contains("source-lost") && shown.contains("dlctl resume \(id)")
        }
        #expect(fixture.bodies.isEmpty)
        #expect(try await fixture.dlctl(Self.alice, "resume", id).succeeded)
        #expect(try await fixture.dlctl(Self.alice, "wait", id).succeeded)
        #expect(fixture.bodies == [true])
    }

    @Test(
        "A18: what is no file to read, or not what was announced, is refused, and the daemon goes on",
        arguments: Trick.allCases)
    func tricks(trick: Trick) async throws {
        let fixture = try await Fixture()
        let before = try openFiles(of: fixture.daemon).count
        let connection = try StreamSocket(path: fixture.daemon.socket)
        connection.setReadTimeout(10)
        let place = fixture.daemon.directory
        let descriptors = try trick.descriptors(in: place)
        defer { for descriptor in descriptors { close(descriptor) } }
        let request = #"{"jsonrpc":"2.0","id":1,"method":"source.receive","params":{"count":1}}"#
        connection.send(request.utf8 + [0x0A])
        if trick == .early {
            // The descriptor arrives with the request, before the daemon is ready.
            connection.send([0x0A])
            #expect(try answers(of: connection).contains { $0.contains("error") })
        } else {
            #expect(try connection.readLine()?.contains("result") == true)
            if descriptors.isEmpty {
                connection.send(trick == .text ? Array("{}\n".utf8) : [0x0A])
            } else {
                #expect(
                    linux_send_descriptors(
                        connection.descriptor, CChar(UInt8(ascii: "\n")), descriptors, Int32(descriptors.count)) == 1)
            }
            let task =
                #"{"kind":"upload","file":"/none/x","url":"\#(fixture.server.url("/in"))","descriptor":0}"#
            let add = #"{"jsonrpc":"2.0","id":2,"method":"task.add","params":{"tasks":[\#(task)]}}"#
            connection.send(add.utf8 + [0x0A])
            let lines = try answers(of: connection)
            #expect(lines.first?.contains("error") == true, "\(lines)")
        }
        #expect(fixture.daemon.answers)
        _ = consume connection
        try await eventually(that: "nothing stays open") { try openFiles(of: fixture.daemon).count <= before }
    }

    @Test(
        "A18: a file system that never lets its files be closed keeps neither the daemon from ending nor its successor",
        .enabled(if: SilentFileSystem.isPossible, "needs /dev/fuse"), arguments: [SIGTERM, SIGKILL])
    func silentFileSystem(signal: Int32) async throws {
        let fixture = try await Fixture()
        let daemon = fixture.daemon
        // One more than the limit of concurrent waits.
        let times = 9
        let silent = try SilentFileSystem(
            passingTo: daemon.socket, times: times, as: Self.alice, url: fixture.server.url("/in"))
        defer { silent.end() }
        try await eventually(that: "all are refused: \(silent.log)", within: .seconds(60)) { silent.isDone }
        // The last connection is closed: the descriptors that it sent cannot be received.
        #expect(silent.answers == times - 1)
        #expect(silent.refusals.count(where: { $0.contains("FUSE, which could keep the daemon waiting") }) == times - 1)
        #expect(silent.refusals.last?.contains("too many processes of the daemon wait") == true, "\(silent.log)")
        try await eventually(that: "they wait for the file system") { silent.waiting == times - 1 }
        #expect(daemon.answers)
        try await expectUpload(fixture, of: "before", by: Self.bob)
        let pid = try #require(daemon.pid)
        try #require(kill(pid, signal) == 0)
        try await eventually(that: "the daemon has ended", within: .seconds(15)) { !daemon.isRunning }
        try await daemon.start()
        try await expectUpload(fixture, of: "after", by: Self.bob)
        // None of the waiting processes was released meanwhile, and no unrequested file added one.
        #expect(silent.waiting == times - 1)
        #expect(fixture.bodies == [true, true])
    }

    @Test(
        "A18: connections that cannot be closed wait for their user's processes, and are closed when those end",
        .enabled(if: SilentFileSystem.isPossible, "needs /dev/fuse"))
    func waitingConnections() async throws {
        let fixture = try await Fixture()
        let times = 9
        let silent = try SilentFileSystem(
            passingTo: fixture.daemon.socket, times: times, as: Self.alice, url: fixture.server.url("/in"))
        defer { silent.end() }
        try await eventually(that: "all is sent: \(silent.log)", within: .seconds(60)) { silent.isDone }
        let pid = try #require(fixture.daemon.pid)
        let receiver = try #require(children(of: pid).first)
        func open() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/\(receiver)/fd").count }
        // The standard streams and the request descriptor of the daemon.
        let atRest = 4
        // The connections with unrequested files, and the one whose file was not taken.
        try await eventually(that: "they wait") { try open() == atRest + times + 1 }
        #expect(try children(of: receiver).count == times - 1)
        silent.end()
        try await eventually(that: "nothing is left of them") {
            try open() == atRest && children(of: receiver).isEmpty
        }
        try await expectUpload(fixture, of: "after", by: Self.alice)
    }

    /// Passes a file that is private to `user` and expects its upload to succeed.
    private func expectUpload(_ fixture: borrowing Fixture, of name: String, by user: uid_t) async throws {
        let place = try fixture.daemon.directory.makeDirectory("place-\(name)")
        let path = place + "/file"
        try fixture.resource.write(to: path)
        try #require(chown(place, user, user) == 0 && chown(path, user, user) == 0 && chmod(path, 0o600) == 0)
        let outcome = try await fixture.dlctl(user, "upload", "--wait", path, fixture.server.url("/in"))
        #expect(outcome.succeeded, "\(outcome.error)")
    }

    enum Trick: CaseIterable {
        case nothing, text, early, two, fifo, directory, socket, writeOnly, path, device

        func descriptors(in place: TemporaryDirectory) throws -> [Int32] {
            switch self {
            case .nothing, .text, .early: return []
            case .two: return [open("/etc/passwd", O_RDONLY), open("/etc/passwd", O_RDONLY)]
            case .fifo:
                try #require(mkfifo(place.file("fifo"), 0o600) == 0)
                return [open(place.file("fifo"), O_RDWR)]
            case .directory: return [open("/etc", O_RDONLY)]
            case .socket: return [Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)]
            case .writeOnly: return [open(try place.write("x", to: "writable"), O_WRONLY)]
            case .path: return [open(try place.write("x", to: "named"), LINUX_O_PATH)]
            case .device: return [open("/dev/zero", O_RDONLY)]
            }
        }
    }

    /// Returns the lines received until the daemon closes the connection, two at most.
    private func answers(of connection: borrowing StreamSocket) throws -> [String] {
        var lines: [String] = []
        while lines.count < 2, let line = try connection.readLine() {
            lines.append(line)
            if line.contains("error") { break }
        }
        return lines
    }
}

private func children(of process: Int32) throws -> [Int32] {
    let threads = "/proc/\(process)/task"
    return try FileManager.default.contentsOfDirectory(atPath: threads).flatMap { thread in
        try String(contentsOfFile: "\(threads)/\(thread)/children", encoding: .utf8)
            .split(separator: " ").compactMap { Int32($0) }
    }
}

/// Returns the paths of the daemon's open files, except those that it opens for itself on first use: further
/// connections to its database, timers, signals.
private func openFiles(of daemon: DaemonProcess) throws -> [String] {
    let pid = try #require(daemon.pid)
    return try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").compactMap { name in
        var text = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/\(pid)/fd/\(name)", &text, text.count)
        guard count > 0 else { return nil }
        let path = String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.hasPrefix("anon_inode:") || path.hasPrefix(daemon.stateDirectory) ? nil : path
    }
}
