import Glibc
import TaskModel
import TestSupport
import Testing

/// Dropped files that are owned by another user than their author.
@Suite(
    "Dropped files of others' making", .timeLimit(.minutes(3)),
    .enabled(if: getuid() == 0, "needs processes of several users"))
struct DropAuthorTests {
    private static let (alice, bob, service): (uid_t, uid_t, uid_t) = (61_201, 61_202, 61_200)

    /// A shared daemon that watches a directory into which every user may drop files.
    private struct Fixture {
        let daemon: DaemonProcess
        let server: ScriptedServer
        let drop: String
        let url: String

        init(as user: uid_t) async throws {
            server = try ScriptedServer([
                "/list": [.status(200, body: "uploads: [{file: '/etc/passwd', url: 'http://127.0.0.1:1/stolen'}]\n")],
                "/in": [.status(201)],
            ])
            url = server.url("/in")
            daemon = try DaemonProcess(
                configuration: """
                    control: {mode: 0666}
                    downloads: {layout: per-user}
                    uploads: {roots: ['@DIR@']}
                    watch: [{directory: '@DIR@/drop'}]
                    """,
                prefix: user == 0
                    ? [] : ["setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", "--"], mode: 0o755)
            drop = try daemon.directory.makeDirectory("drop")
            for path in [daemon.downloads, daemon.stateDirectory, daemon.directory.path, drop] {
                try #require(chown(path, user, user) == 0)
            }
            try #require(chmod(drop, 0o777) == 0 && chmod(daemon.downloads, 0o755) == 0)
            try await daemon.start()
        }

        func run(_ uid: uid_t, _ arguments: String...) async throws -> Outcome {
            try await TestSupport.run(
                ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"] + arguments)
        }

        func dlctl(_ uid: uid_t, _ arguments: String...) async throws -> Outcome {
            try await TestSupport.run(
                ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
                    + [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments)
        }

        func expectRefused(_ name: String, _ words: String) async throws {
            let note = "\(drop)/.failed/\(name).note.txt"
            try await eventually(that: "\(name) is refused", within: .seconds(20)) {
                try await run(0, "grep", "-q", words, note).succeeded
            }
            #expect(try daemon.tasks().allSatisfy { $0.kind == .download })
        }
    }

    @Test("a finished download that is moved into a watched directory is nobody's word", arguments: [0, service])
    func finishedDownload(daemonUser: uid_t) async throws {
        let fixture = try await Fixture(as: daemonUser)
        let added = try await fixture.dlctl(Self.alice, "add", "--wait", fixture.server.url("/list"))
        #expect(added.succeeded, "\(added.error)")
        let own = fixture.daemon.path("\(Self.alice)/list")
        #expect(try await fixture.run(Self.alice, "mv", own, fixture.drop + "/x.yaml").succeeded)
        try await fixture.expectRefused("x.yaml", "other than its owner\\|daemon's user")
    }

    @Test("a file that others may write to is nobody's word")
    func writable() async throws {
        let fixture = try await Fixture(as: 0)
        let path = try fixture.daemon.directory.write(
            "uploads: [{file: '\(fixture.daemon.directory.file("secret"))', url: '\(fixture.url)'}]\n", to: "shared")
        try fixture.daemon.directory.write("bob's", to: "secret")
        try #require(chown(path, Self.bob, 100) == 0 && chmod(path, 0o664) == 0)
        #expect(rename(path, fixture.drop + "/notes.yaml") == 0)
        try await fixture.expectRefused("notes.yaml", "other than its owner")
    }

    @Test("nothing is moved into a directory of another user's, from where it could be dropped again")
    func foreignPlace() async throws {
        let fixture = try await Fixture(as: 0)
        #expect(try await fixture.run(Self.alice, "mkdir", "-m", "777", fixture.drop + "/.done").succeeded)
        let text = "downloads: [{url: 'http://127.0.0.1:1/x', paused: true}]"
        let command = "umask 022; echo \"\(text)\" > \(fixture.drop)/bobs.yaml"
        #expect(try await fixture.run(Self.bob, "sh", "-c", command).succeeded)
        try await eventually(that: "it is queued") { try fixture.daemon.tasks().count == 1 }
        #expect(TemporaryDirectory.names(beneath: fixture.drop + "/.done") == [])
        #expect(try await fixture.run(0, "rmdir", fixture.drop + "/.done").succeeded)
        // The watcher looks again after a minute.
        try await eventually(that: "it is moved away", within: .seconds(110)) {
            TemporaryDirectory.names(beneath: fixture.drop + "/.done").contains("bobs.yaml")
        }
        #expect(try fixture.daemon.tasks().count == 1)
    }
}
