import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The files that a shared daemon reads and writes for users with different uids.
@Suite(
    "Files of several users", .timeLimit(.minutes(5)), .enabled(if: getuid() == 0, "needs processes of several users"))
struct OwnershipTests {
    private static let (alice, bob, service): (uid_t, uid_t, uid_t) = (61_001, 61_002, 61_000)

    /// A daemon that every user may use, with `srv` as a download root and `out` as an upload root.
    private final class Fixture {
        let daemon: DaemonProcess
        let server: ScriptedServer
        let resource = Resource(size: 10_000)
        let srv: String
        let out: String

        /// - Parameter user: the uid that the daemon runs as.
        init(as user: uid_t, _ configuration: String = "") async throws {
            server = try ScriptedServer(["/file": [.serve(resource)]])
            let prefix =
                user == 0
                ? [] : ["setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", "--"]
            daemon = try DaemonProcess(
                configuration: """
                    control: {mode: 0666}
                    downloads: {roots: ['@DIR@/srv'], layout: per-user}
                    uploads: {roots: ['@DIR@/out']}
                    \(configuration)
                    """,
                prefix: prefix, mode: 0o755)
            srv = try daemon.directory.makeDirectory("srv")
            out = try daemon.directory.makeDirectory("out")
            for path in [daemon.downloads, daemon.stateDirectory, srv, daemon.directory.path] {
                try #require(chown(path, user, user) == 0)
            }
            try #require(chmod(srv, 0o755) == 0 && chmod(out, 0o755) == 0 && chmod(daemon.downloads, 0o750) == 0)
            try await daemon.start()
        }

        var url: String { server.url("/file") }

        private func command(_ uid: uid_t, _ groups: [uid_t]) -> [String] {
            let all =
                groups.isEmpty ? ["--clear-groups"] : ["--groups", groups.map(String.init).joined(separator: ",")]
            return ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)"] + all
        }

        /// Runs `dlctl` as a user.
        func dlctl(_ uid: uid_t, groups: [uid_t] = [], _ arguments: String...) async throws -> Outcome {
            try await run(
                command(uid, groups) + [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments)
        }

        /// Waits until task 1 is shown with `words`. A busy machine may delay the daemon's check.
        func expectShown(_ words: String, to user: uid_t) async throws {
            try await eventually(that: "task 1 is shown with: \(words)") {
                try await dlctl(user, "show", "1").output.contains(words)
            }
        }

        /// Returns whether a command run as the user succeeds.
        func may(_ uid: uid_t, _ arguments: String...) async throws -> Bool {
            try await run(command(uid, []) + arguments).succeeded
        }
    }

    @Test(
        "each user's downloads lie in a directory that nobody else may read or change",
        arguments: [0, service])
    func ownDirectories(daemonUser: uid_t) async throws {
        let fixture = try await Fixture(as: daemonUser)
        let daemon = fixture.daemon
        for user in [Self.alice, Self.bob] {
            let added = try await fixture.dlctl(user, "add", "--wait", "-d", "isos", fixture.url)
            #expect(added.succeeded, "\(added.error)")
            #expect(fixture.resource.difference(fromFileAt: daemon.path("\(user)/isos/file")) == nil)
        }
        let (file, place) = (daemon.path("\(Self.alice)/isos/file"), daemon.path("\(Self.alice)"))
        #expect(try await !fixture.may(Self.bob, "cat", file))
        #expect(try await !fixture.may(Self.bob, "ls", place))
        #expect(try await !fixture.may(Self.bob, "touch", place + "/new"))
        #expect(try await fixture.may(Self.alice, "grep", "-c", "", file))
        #expect(try await fixture.may(Self.alice, "sh", "-c", "echo more >> \(file)"))
        #expect(try await fixture.may(Self.alice, "mv", file, place + "/mine"))
        try await fixture.expectShown("missing: moved or removed since", to: Self.alice)
        #expect(try await fixture.may(Self.alice, "rm", "-r", place + "/mine", place + "/isos"))
        for directory in ["\(Self.alice)", place, place + "/isos"] {
            let refused = try await fixture.dlctl(Self.bob, "add", "--shared", "-d", directory, fixture.url)
            #expect(refused.status == .exited(77), "\(directory) \(refused)")
        }
        #expect(try await fixture.dlctl(Self.alice, "add", "--wait", "-d", place + "/named", fixture.url).succeeded)
        #expect(fixture.resource.difference(fromFileAt: place + "/named/file") == nil)
        // Downloads of the daemon's own user go to the common directory.
        #expect(try await fixture.dlctl(daemonUser, "add", "--wait", fixture.url).succeeded)
        #expect(fixture.resource.difference(fromFileAt: daemon.path("file")) == nil)
    }

    @Test("what others put into the common directory is not in the way of a user who has no directory yet")
    func reservedNames() async throws {
        let fixture = try await Fixture(as: Self.service)
        let carol: uid_t = 61_003
        let inTheWay = try await fixture.dlctl(
            Self.bob, "add", "--wait", "--shared", "-o", "\(carol)", "--on-conflict", "overwrite", fixture.url)
        #expect(inTheWay.succeeded, "\(inTheWay.error)")
        let refused = try await fixture.dlctl(Self.bob, "add", "--shared", "-d", "\(carol)", fixture.url)
        #expect(refused.status == .exited(77), "\(refused)")
        let added = try await fixture.dlctl(carol, "add", "--wait", fixture.url)
        #expect(added.succeeded, "\(added.error)")
        #expect(fixture.resource.difference(fromFileAt: fixture.daemon.path("\(carol)/file")) == nil)
        #expect(fixture.resource.difference(fromFileAt: fixture.daemon.path("\(carol) (1)")) == nil)
    }

    @Test(
        "nobody replaces another user's file in the common directory, and everybody her own", arguments: [0, service])
    func overwriting(daemonUser: uid_t) async throws {
        let fixture = try await Fixture(as: daemonUser)
        let path = fixture.daemon.path("file")
        func overwrite(_ user: uid_t) async throws -> Outcome {
            try await fixture.dlctl(user, "add", "--wait", "--shared", "--on-conflict", "overwrite", fixture.url)
        }
        func inode() -> UInt64 {
            var information = stat()
            return stat(path, &information) == 0 ? UInt64(information.st_ino) : 0
        }
        #expect(try await overwrite(Self.alice).succeeded)
        let first = inode()
        let refused = try await overwrite(Self.bob)
        #expect(refused.status == .exited(1) && refused.error.contains("permission-denied"), "\(refused.error)")
        #expect(inode() == first)
        #expect(try await overwrite(Self.alice).succeeded)
        #expect(inode() != first)
        try await fixture.expectShown("replaced or changed since", to: Self.alice)
        // The administrator may overwrite it.
        #expect(try await overwrite(0).succeeded)
    }

    @Test("a directory beneath a root takes the files of those whom the kernel would let write there")
    func roots() async throws {
        let fixture = try await Fixture(as: 0)
        let secret = try fixture.daemon.directory.makeDirectory("srv/secret")
        let theirs = try fixture.daemon.directory.makeDirectory("srv/theirs")
        let open = try fixture.daemon.directory.makeDirectory("srv/open")
        try fixture.daemon.directory.write("old", to: "srv/open/file")
        try #require(chmod(secret, 0o700) == 0 && chmod(open, 0o777) == 0)
        try #require(chmod(theirs, 0o770) == 0 && chown(theirs, Self.bob, 7) == 0)
        for place in [secret, secret + "/none", theirs] {
            let refused = try await fixture.dlctl(Self.alice, "add", "-d", place, fixture.url)
            #expect(refused.status == .exited(77) && refused.error.contains("may not write to \(place)"))
        }
        let overwritten = try await fixture.dlctl(
            Self.alice, "add", "--wait", "-d", open, "--on-conflict", "overwrite", fixture.url)
        #expect(overwritten.status == .exited(1))
        #expect(try String(contentsOfFile: open + "/file", encoding: .utf8) == "old")
        // The user's group applies, even after the daemon has restarted.
        let added = try await fixture.dlctl(Self.alice, groups: [7], "add", "--paused", "-d", theirs, fixture.url)
        #expect(added.succeeded, "\(added.error)")
        let id = added.lines.first ?? ""
        try await fixture.daemon.kill()
        try await fixture.daemon.start()
        #expect(try await fixture.dlctl(Self.alice, "resume", id).succeeded)
        #expect(try await fixture.dlctl(Self.alice, "wait", id).succeeded)
        #expect(fixture.resource.difference(fromFileAt: theirs + "/file") == nil)
        #expect(try await fixture.dlctl(Self.bob, "add", "--wait", "-d", theirs, fixture.url).succeeded)
    }

    @Test(
        "A42: a root itself takes the files of those alone whom the kernel would let write there, whoever owns it",
        arguments: [0, service])
    func rootItself(daemonUser: uid_t) async throws {
        let fixture = try await Fixture(as: daemonUser)
        for place in [fixture.srv, fixture.srv + "/new"] {
            let refused = try await fixture.dlctl(Self.alice, "add", "-d", place, fixture.url)
            #expect(refused.status == .exited(77) && refused.error.contains("may not write to \(place)"), "\(refused)")
        }
        #expect(!exists(fixture.srv + "/new"))
        try #require(chmod(fixture.srv, 0o777) == 0)
        #expect(try await fixture.dlctl(Self.alice, "add", "--wait", "-d", fixture.srv, fixture.url).succeeded)
        // The common directory is open to all although it belongs to the daemon.
        #expect(try await fixture.dlctl(Self.alice, "add", "--wait", "--shared", fixture.url).succeeded)
    }

    @Test("what root made beneath a root is no daemon's that runs as root; what the daemon made is, also after its end")
    func rootsOwn() async throws {
        let fixture = try await Fixture(as: 0)
        let site = try fixture.daemon.directory.makeDirectory("srv/site")
        let pages = try fixture.daemon.directory.makeDirectory("srv/site/pages")
        let open = try fixture.daemon.directory.makeDirectory("srv/open")
        try #require(chmod(site, 0o755) == 0 && chmod(pages, 0o755) == 0 && chmod(open, 0o777) == 0)
        try #require(chmod(fixture.srv, 0o777) == 0)
        for place in [site, pages, pages + "/new"] {
            let refused = try await fixture.dlctl(Self.alice, "add", "-d", place, fixture.url)
            #expect(refused.status == .exited(77) && refused.error.contains("may not write to \(place)"), "\(refused)")
        }
        #expect(!exists(pages + "/new") && !exists(site + "/file"))
        for place in [fixture.srv, open, fixture.srv + "/made", fixture.srv + "/made/deeper"] {
            let added = try await fixture.dlctl(Self.alice, "add", "--wait", "-d", place, fixture.url)
            #expect(added.succeeded, "\(place): \(added.error)")
        }
        try await fixture.daemon.kill()
        try await fixture.daemon.start()
        let added = try await fixture.dlctl(Self.bob, "add", "--wait", "-d", fixture.srv + "/made", fixture.url)
        #expect(added.succeeded, "\(added.error)")
        // A subdirectory of it that root created is not accepted.
        let within = try fixture.daemon.directory.makeDirectory("srv/made/etc")
        try #require(chmod(within, 0o755) == 0)
        let refused = try await fixture.dlctl(Self.bob, "add", "-d", within, fixture.url)
        #expect(refused.status == .exited(77), "\(refused)")
    }

    @Test(
        "A6: no root reaches the daemon's own directories, nor hidden ones", arguments: [0, service])
    func ownState(daemonUser: uid_t) async throws {
        let fixture = try await Fixture(as: daemonUser, "")
        let daemon = fixture.daemon
        let base = daemon.directory.path
        try daemon.configure(
            "control: {mode: 0666}\ndownloads: {roots: ['@DIR@']}\nuploads: {roots: ['@DIR@']}\n")
        #expect(try await fixture.dlctl(0, "reload").succeeded)
        #expect(chmod(daemon.stateDirectory, 0o777) == 0)
        for user in [Self.alice, daemonUser] {
            let refused = try await fixture.dlctl(user, "add", "-d", daemon.stateDirectory, fixture.url)
            #expect(refused.error.contains("directory of the daemon itself"), "\(user) \(refused)")
            for hidden in [".ssh", ".config/autostart", "x/.git/hooks"] {
                let refused = try await fixture.dlctl(user, "add", "-d", "\(base)/\(hidden)", fixture.url)
                #expect(refused.status == .exited(64) && refused.error.contains("hidden"), "\(refused)")
            }
        }
        let database = daemon.stateDirectory + "/dld.db"
        #expect(chmod(database, 0o644) == 0)
        let sent = try await fixture.dlctl(Self.alice, "upload", database, fixture.url)
        #expect(sent.status == .exited(77), "\(sent)")
    }

    @Test("A37: an upload reads what the kernel would let its user read, and says of the rest nothing")
    func uploads() async throws {
        let fixture = try await Fixture(as: 0)
        let directory = fixture.daemon.directory
        let closed = try directory.makeDirectory("out/closed")
        try directory.write("secret", to: "out/closed/file")
        let denied = try directory.write("secret", to: "out/denied")
        let grouped = try directory.write("for the group", to: "out/grouped")
        try #require(chmod(closed, 0o700) == 0 && chmod(closed + "/file", 0o644) == 0)
        try #require(chown(denied, 0, 7) == 0 && chmod(denied, 0o604) == 0)
        try #require(chown(grouped, 0, 7) == 0 && chmod(grouped, 0o640) == 0)
        let target = fixture.server.url("/in")
        var texts: Set<String> = []
        for path in [closed + "/file", closed + "/none", denied, grouped, "/etc/shadow", "/etc/none"] {
            let groups = path == denied ? [uid_t(7)] : []
            // The plain `dlctl upload` would check the file itself first.
            let task = #"{"tasks":[{"kind":"upload","file":"\#(path)","url":"\#(target)"}]}"#
            let refused = try await fixture.dlctl(Self.alice, groups: groups, "rpc", "task.add", task)
            #expect(refused.error.contains("permission-denied"), "\(path) \(refused)")
            texts.insert(refused.error.replacing(path, with: "PATH"))
        }
        #expect(texts.count == 1, "\(texts)")
        let missing = try await fixture.dlctl(
            Self.alice, "rpc", "task.add",
            #"{"tasks":[{"kind":"upload","file":"\#(fixture.out)/none","url":"\#(target)"}]}"#)
        #expect(missing.error.contains("there is no file"), "\(missing)")
        #expect(fixture.server.requests().isEmpty)
        // The group's permission still applies after a restart of the daemon.
        let added = try await fixture.dlctl(Self.alice, groups: [7], "upload", "--paused", grouped, target)
        #expect(added.succeeded, "\(added.error)")
        try await fixture.daemon.kill()
        try await fixture.daemon.start()
        #expect(try await fixture.dlctl(Self.alice, "resume", added.lines.first ?? "").succeeded)
        try await eventually(that: "the file is sent") { fixture.server.requests().contains { $0.path == "/in" } }
    }

    @Test("A37: a refusal tells nobody which of another user's files, directories and tasks there are")
    func oracle() async throws {
        let fixture = try await Fixture(as: 0)
        let daemon = fixture.daemon
        let secret = try daemon.directory.makeDirectory("srv/secret")
        try daemon.directory.write("hers", to: "srv/secret/file")
        try #require(chown(secret, Self.alice, Self.alice) == 0 && chmod(secret, 0o700) == 0)
        let added = try await fixture.dlctl(
            Self.alice, "add", "--wait", "--key", "night", "-d", "isos", fixture.url)
        #expect(added.succeeded, "\(added.error)")
        let hers = added.lines.first ?? ""
        /// Returns the distinct responses to a user, with the requested name masked.
        func answers(_ names: [String], _ ask: (String) async throws -> Outcome) async throws -> Set<String> {
            var texts: Set<String> = []
            for name in names {
                let outcome = try await ask(name)
                texts.insert("\(outcome.status) \((outcome.output + outcome.error).replacing(name, with: "NAME"))")
            }
            return texts
        }
        let own = daemon.path("\(Self.alice)")
        let places = [own + "/isos", own + "/none", own + "/isos/file", own + "/a/b"]
        let hidden = [secret + "/file", secret + "/none", secret + "/file/x"]
        for places in [places, hidden] {
            for conflict in ["rename", "overwrite", "skip", "fail"] {
                let told = try await answers(places) {
                    try await fixture.dlctl(Self.bob, "add", "-d", $0, "--on-conflict", conflict, fixture.url)
                }
                #expect(told.count == 1 && told.first?.hasPrefix("\(ExitStatus.exited(77))") == true, "\(told)")
            }
        }
        for command in ["show", "pause", "resume", "cancel", "retry", "remove", "wait"] {
            let told = try await answers([hers, "424242"]) { try await fixture.dlctl(Self.bob, command, $0) }
            #expect(told.count == 1, "\(command): \(told)")
        }
        // Her key does not apply to his tasks.
        let his = try await fixture.dlctl(Self.bob, "add", "--wait", "--key", "night", "-d", "isos", fixture.url)
        #expect(his.succeeded && his.lines.first != hers, "\(his)")
        #expect(fixture.resource.difference(fromFileAt: daemon.path("\(Self.bob)/isos/file")) == nil)
    }
}
