import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Directories that the configuration names and that cannot be used.
@Suite("Places", .serialized, .timeLimit(.minutes(1)))
struct PlaceTests {
    /// Wrong configurations and the error message for each.
    private static let wrong: [(configuration: String, message: String)] = [
        ("downloads: {roots: [@DIR@/none]}\n", "dld.yaml:1:21: @DIR@/none does not exist; create the directory"),
        ("downloads: {roots: [@DIR@/dld.yaml]}\n", "dld.yaml:1:21: @DIR@/dld.yaml is not a directory"),
        ("uploads: {roots: [@DIR@/none]}\n", "dld.yaml:1:19: @DIR@/none does not exist"),
        ("control: {admin-group: nosuch}\n", "dld.yaml:1:24: control.admin-group: there is no group nosuch"),
        ("tls: {ca-file: @DIR@/none}\n", "dld.yaml:1:16: @DIR@/none does not exist; name an existing file"),
        ("watch: [{directory: @DIR@/none}]\n", "dld.yaml:1:21: @DIR@/none does not exist"),
        ("uploads:\n  roots:\n    - @DIR@\n    - @DIR@/none\n", "dld.yaml:4:7: @DIR@/none does not exist"),
    ]

    @Test("--check-config and reload refuse them, with file, line and what helps", arguments: 0..<wrong.count)
    func refused(index: Int) async throws {
        let daemon = try await DaemonProcess.started()
        let (configuration, message) = Self.wrong[index]
        let expected = message.replacing("@DIR@", with: daemon.directory.path)
        try daemon.configure(configuration)
        let check = try await run([
            DaemonProcess.program("dld"), "--config", daemon.configurationFile, "--check-config",
        ])
        #expect(check.status == .exited(78) && check.error.contains(expected), "\(check)")
        #expect(!check.output.contains("is right"))
        let reload = try await daemon.dlctl("reload")
        #expect(reload.status == .exited(1) && reload.error.contains(expected), "\(reload)")
        let status = try await daemon.dlctl("status")
        #expect(
            status.output.contains("the new configuration is invalid; the previous one stays in effect: "), "\(status)")
        #expect(try await daemon.terminate() == .exited(0))
    }

    @Test("a daemon starts without them, says so, and refuses tasks for them until they are there")
    func start() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let daemon = try await DaemonProcess.started(
            quickRetries + "downloads: {roots: [@DIR@/downloads, @DIR@/later]}\n")
        let place = daemon.directory.file("later")
        #expect(daemon.log.contains("\(place) does not exist"), "\(daemon.log)")
        let refused = try await daemon.dlctl("add", "--directory", place, server.url("/a"))
        #expect(refused.status == .exited(64), "\(refused)")
        #expect(
            refused.error.contains("--directory: \(place) does not exist; create the directory"), "\(refused.error)")
        let status = try await daemon.dlctl("status")
        #expect(
            status.output.contains("problems   \(daemon.configurationFile):2:53: \(place) does not exist"), "\(status)")
        // A problem that has existed since the start does not block another change.
        try daemon.configure(
            quickRetries + "log: {level: debug}\ndownloads: {roots: [@DIR@/downloads, @DIR@/later]}\n")
        let reload = try await daemon.dlctl("reload")
        #expect(reload.succeeded && reload.error.contains("\(place) does not exist"), "\(reload)")
        try daemon.directory.makeDirectory("later")
        #expect(try await daemon.dlctl("status").output.contains("problems") == false)
        #expect(try await daemon.dlctl("add", "--wait", "--directory", place, server.url("/a")).succeeded)
        daemon.expectTidy()
    }

    @Test("a user's own daemon puts files where the caller is, and wherever else its user may write")
    func whereTheCallerIs() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let daemon = try DaemonProcess(configuration: "watch: [{directory: @DIR@/drop}]\n")
        let base = daemon.directory.path
        try daemon.directory.makeDirectory("drop")
        try daemon.directory.makeDirectory("far")
        try #require(symlink(base + "/far", base + "/link") == 0)
        try await daemon.start()
        let places = [
            (".", base), (base + "/.hidden", base + "/.hidden"), ("./deep/er", base + "/deep/er"),
            ("./link", base + "/far"), (base + "/link/x", base + "/far/x"),
        ]
        for (directory, place) in places {
            let added = try await daemon.dlctl("add", "--wait", "-d", directory, server.url("/a"))
            let shown = try await daemon.dlctl("show", String(added.output.dropLast()))
            #expect(added.succeeded && access(place + "/a", F_OK) == 0, "\(directory) \(shown.output)")
        }
        for kept in ["state", "drop", "state/sub"] {
            let refused = try await daemon.dlctl("add", "-d", "./" + kept, server.url("/a"))
            #expect(refused.status == .exited(64), "\(refused)")
            #expect(refused.error.contains("is in a directory of the daemon itself"), "\(refused)")
        }
        try daemon.configure("downloads: {roots: [@DIR@/downloads]}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        let refused = try await daemon.dlctl("add", "-d", ".", server.url("/a"))
        #expect(refused.status == .exited(64) && refused.error.contains("see downloads.roots"), "\(refused)")
    }

    @Test("the places of a user's own daemon follow one rule, and the start, the check and the status name them")
    func shownPaths() async throws {
        let directory = try TemporaryDirectory()
        let home = try directory.makeDirectory("home")
        let environment: [String: String?] = [
            "HOME": home, "XDG_RUNTIME_DIR": nil, "XDG_STATE_HOME": nil, "XDG_CONFIG_HOME": nil, "DLD_SOCKET": nil,
            "STATE_DIRECTORY": nil, "RUNTIME_DIRECTORY": nil, "XDG_DOWNLOAD_DIR": nil,
        ]
        func dld(_ option: String) async throws -> Outcome {
            try await run([DaemonProcess.program("dld"), option], environment: environment, directory: home)
        }
        let bare = try await dld("--show-paths")
        let none = "configuration  \(home)/.config/dld/dld.yaml (does not exist; the defaults apply)"
        #expect(bare.output.contains(none), "\(bare)")
        try directory.makeDirectory("home/.config/dld")
        try directory.write("downloads: {directory: \(home)/D}\n", to: "home/.config/dld/dld.yaml")
        let shown = try await dld("--show-paths")
        #expect(shown.output.contains("configuration  \(home)/.config/dld/dld.yaml\n"), "\(shown)")
        #expect(shown.output.contains("state          \(home)/.local/state/dld\n"), "\(shown)")
        #expect(shown.output.contains("/dld/dld.sock\n") && shown.output.contains("downloads      \(home)/D\n"))
        try directory.write("downloads: {directory: nowhere}\n", to: "home/.config/dld/dld.yaml")
        let check = try await dld("--check-config")
        #expect(check.status == .exited(78) && check.error.contains("\(home)/.config/dld/dld.yaml:1:24:"), "\(check)")
    }

    @Test("a task whose root the configuration no longer names waits, and goes on once it does")
    func unnamed() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let right = quickRetries + "downloads: {roots: [@DIR@/downloads, @DIR@/disk]}\n"
        let daemon = try DaemonProcess(configuration: right)
        let place = try daemon.directory.makeDirectory("disk")
        try await daemon.start()
        let id = try await daemon.add("--paused", "--directory", place, server.url("/a"))
        try await daemon.terminate()
        try daemon.configure(quickRetries + "downloads: {roots: [@DIR@/downloads, @DIR@/disc]}\n")
        try await daemon.start()
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        let waiting = try await daemon.state(of: id, "to wait") { $0.state == .waiting || $0.state == .failed }
        #expect(waiting.reason == .disk && waiting.error?.code == .pathNotAllowed && waiting.attempts == 0)
        try daemon.configure(right)
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        daemon.expectTidy()
    }

    @Test("a configuration that cannot be opened is none that is missing", .enabled(if: isRoot))
    func unreachableConfiguration() async throws {
        let home = try TemporaryDirectory(mode: 0o755)
        try home.makeDirectory("dld")
        let file = try home.write("limits: {active-tasks: 1}\n", to: "dld/dld.yaml")
        let check = [
            "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
            try DaemonProcess.program("dld"), "--check-config",
        ]
        func run() async throws -> Outcome {
            try await TestSupport.run(check, environment: ["XDG_CONFIG_HOME": home.path, "HOME": home.path])
        }
        #expect(chmod(home.file("dld"), 0o700) == 0)
        let closed = try await run()
        #expect(
            closed.status == .exited(78) && closed.error.contains("cannot be opened (Permission denied)"), "\(closed)")
        #expect(chmod(home.file("dld"), 0o755) == 0 && unlink(file) == 0 && symlink("nowhere", file) == 0)
        let dangling = try await run()
        #expect(dangling.status == .exited(78) && dangling.error.contains("No such file or directory"), "\(dangling)")
    }

    @Test("a task whose place goes away waits for the disk, burns no attempt, says why, and goes on when it is back")
    func away() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let daemon = try await DaemonProcess.started(
            quickRetries + "downloads: {roots: [@DIR@/downloads, @DIR@/disk]}\n")
        let place = try daemon.directory.makeDirectory("disk")
        let id = try await daemon.add("--paused", "--directory", place, server.url("/a"))
        #expect(rename(place, place + ".away") == 0)
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        let waiting = try await daemon.state(of: id, "to wait") { $0.state == .waiting }
        #expect(waiting.reason == .disk && waiting.attempts == 0 && waiting.error?.code == .io)
        #expect(waiting.error?.message == "\(place) does not exist; create the directory, or mount its file system")
        #expect(server.requests().isEmpty)
        #expect(rename(place + ".away", place) == 0)
        #expect(try await daemon.settled(id).state == .completed)
        daemon.expectTidy()
    }

    @Test(
        "what a daemon without rights may not write to is refused at --check-config and add",
        .enabled(if: isRoot))
    func rights() async throws {
        let daemon = try DaemonProcess(mode: 0o755)
        for name in ["", "/state", "/downloads"] { #expect(chown(daemon.directory.path + name, 65534, 65534) == 0) }
        let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        let place = try daemon.directory.makeDirectory("closed")
        #expect(chmod(place, 0o755) == 0)
        try daemon.configure("downloads: {roots: [\(place)]}\n")
        let check = try await run(
            nobody + [DaemonProcess.program("dld"), "--config", daemon.configurationFile, "--check-config"])
        #expect(check.status == .exited(78), "\(check)")
        #expect(check.error.contains("dld.yaml:1:21: \(place) cannot be written to by the user nobody"), "\(check)")
        try daemon.configure("downloads: {roots: [\(daemon.downloads), \(place)]}\n")
        try await daemon.start(under: nobody)
        let refused = try await daemon.dlctl("add", "--directory", place, "http://127.0.0.1:1/a")
        #expect(refused.status == .exited(77) && refused.error.contains("give it permission"), "\(refused)")
        #expect(try await daemon.terminate() == .exited(0))
    }
}
