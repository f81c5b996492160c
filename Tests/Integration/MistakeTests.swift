import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Common mistakes of new users, each with the required message: what is wrong, where, and what to do.
@Suite("Mistakes", .serialized, .timeLimit(.minutes(2)))
struct MistakeTests {
    /// A shell command line. `@DIR@` stands for the daemon's directory, `@URL@` for a server that responds with 404.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let line: String
        let status: Int32
        /// The texts that standard error must contain.
        let told: [String]

        init(_ line: String, _ status: Int32, _ told: String...) {
            self.line = line
            self.status = status
            self.told = told
        }

        var testDescription: String { "dlctl \(line)" }
    }

    /// The mistakes and their messages. Task 1 is paused, task 2 completed, task 3 failed.
    private static let table = [
        Mistake("frobnicate", 64, "there is no command \"frobnicate\"", "dlctl --help"),
        Mistake("ad http://h/", 64, "there is no command \"ad\"", "did you mean \"add\"?"),
        Mistake("add", 64, "give a URL, or --input FILE", "dlctl add --help"),
        Mistake("add --foo http://h/", 64, "--foo: there is no such option", "dlctl add --help"),
        Mistake("add example.org/file", 64, "example.org/file: has no scheme; begin it with https://"),
        Mistake("add htp://h/x", 64, "htp://h/x: the protocol htp is not allowed", "http, https, ftp, ftps or sftp"),
        Mistake("add http://", 64, "has no host", "https://example.org/file"),
        Mistake("add http://h:99999/x", 64, "http://h:99999/x: the port is not a number from 1 to 65535"),
        Mistake(
            "add -d /etc http://h/x", 64, "--directory: /etc is not below a directory that allows downloads",
            "downloads.roots"),
        Mistake("add -d @DIR@/none http://h/x", 64, "--directory: @DIR@/none", "downloads.roots"),
        Mistake("add -d x/../../y http://h/x", 64, "--directory: must not contain a .. component"),
        Mistake("add -o a/b http://h/x", 64, "--output: is a path", "the directory with --directory"),
        Mistake("add -o '' http://h/x", 64, "--output: is empty", "give a file name or omit the option"),
        Mistake("add -o x http://h/1 http://h/2", 64, "--output can be used with one URL only"),
        Mistake("add --checksum md5 http://h/x", 64, "--checksum: write ALGORITHM:HEX"),
        Mistake("add --update --key k http://h/1", 64, "give --batch instead of --key"),
        Mistake("add --checksum sha256:12 http://h/x", 64, "--checksum: a sha-256 digest has 64 hexadecimal digits"),
        Mistake("add --checksum sha256:12 http://h/1 http://h/2", 64, "--checksum can be used with one URL only"),
        Mistake("add --paused http://h/9 >/dev/full", 1, "cannot write to standard output", "queued: 4"),
        Mistake("add --limit abc http://h/x", 64, "--limit: \"abc\" is not", "such as 500K or 2M"),
        Mistake("add --connections 99 http://h/x", 64, "--connections: \"99\" is not", "1 to 16"),
        Mistake("add --priority urgent http://h/x", 64, "--priority: \"urgent\" is not one of low, normal, high"),
        Mistake("add --start-at tomorrow http://h/x", 64, "--start-at: \"tomorrow\" is not a time", "22:00 or +2h"),
        Mistake("add --header nocolon http://h/x", 64, "--header: is not of the form \"Name: value\""),
        Mistake("add --header @/none http://h/x", 64, "--header: cannot open /none: No such file"),
        Mistake("add --user me --password-file /none http://h/x", 64, "--password-file: cannot open /none"),
        Mistake("add --input /none", 64, "--input: cannot open /none: No such file or directory"),
        Mistake("add --input /etc", 64, "--input: cannot read /etc: Is a directory"),
        Mistake("add --input @DIR@/key.yaml", 64, "key.yaml:2:5: \"ulr\" is not a key here; did you mean \"url\"?"),
        Mistake("queue apply @DIR@/tab.yaml", 64, "tab.yaml:2:1: YAML does not allow a tab here; indent with spaces"),
        Mistake("add --input @DIR@/list.txt", 64, "list.txt:2:1: \"url\": has no // after ftp:"),
        Mistake("add --wait http://127.0.0.1:1/x", 1, "port 1 of 127.0.0.1 refuses the connection"),
        Mistake("add --wait http://nowhere.invalid/x", 1, "the name nowhere.invalid does not resolve"),
        Mistake("add --wait @URL@", 1, "failed: http-404"),
        Mistake("show 999", 1, "no task has the id 999", "dlctl list"),
        Mistake("show abc", 64, "\"abc\" is not a task id", "dlctl show --help"),
        Mistake("pause", 64, "select the tasks: ID…, STATE…, --all", "dlctl pause --help"),
        Mistake("pause 1 --all", 64, "give ids or a filter", "not both"),
        Mistake("pause 1 failed", 64, "give ids or a filter", "not both"),
        Mistake("add --input /dev/null", 64, "/dev/null: has no task", "--allow-empty"),
        Mistake("add --input - </dev/null", 64, "standard input: has no task", "--allow-empty"),
        Mistake("queue apply /dev/null --batch b --prune", 64, "/dev/null: has no task", "--allow-empty"),
        Mistake("add --input - <@DIR@/list.txt", 64, "standard input:2:1: \"url\": has no // after ftp:"),
        Mistake("resume 2", 1, "task 2 is completed", "only a paused or waiting task can be resumed"),
        Mistake("pause 2", 1, "task 2 is completed"),
        Mistake("cancel 2", 1, "task 2 is completed"),
        Mistake("retry 1", 1, "task 1 is paused", "only a task that has ended or needs you can be retried"),
        Mistake("move 2 --first", 1, "task 2 is completed", "only a task that has not ended"),
        Mistake("move 1 --before 1", 64, "--before: a task cannot be moved before itself"),
        Mistake("add --user a:b http://h/x", 64, "--user: must not contain a colon", "--password-file FILE"),
        Mistake("show", 64, "give an id; see"), Mistake("queue apply", 64, "give a file; see"),
        Mistake("move 1", 64, "give the new position: --first, --last or --before ID"),
        Mistake("set 1", 64, "give at least one change", "--url"),
        Mistake("set 2 --limit 1K", 1, "task 2 is completed", "it can no longer be changed"),
        Mistake("list --state foo", 64, "--state: \"foo\" is not one of queued, active"),
        Mistake("list --limit -1", 64, "--limit: \"-1\" is not"),
        Mistake("limit --download abc", 64, "--download: \"abc\" is not", "such as 500K or 2M"),
        Mistake("wait 1 --timeout -1", 64, "--timeout: \"-1\" is not a number of seconds"),
        Mistake("wait 1 --timeout 0.1", 75, "the timeout expired", "the tasks continue"),
        Mistake("upload /none http://h/x", 64, "/none: No such file or directory"),
        Mistake("upload /etc http://h/x", 64, "/etc: is a directory; -r uploads the files beneath it"),
        Mistake("rpc task.get '{'", 64, "is not JSON", "'{\"id\":7}'"),
        Mistake("--socket @DIR@/none list", 69, "no daemon answers on @DIR@/none", "\"dld --socket @DIR@/none\""),
        Mistake("--socket '' list", 64, "--socket: a socket's path must have 1 to 107 bytes"),
    ]

    @Test("each is answered with what is wrong, where, and what to do")
    func table() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/none": [.status(404, body: "")]])
        let place = try TemporaryDirectory()
        let daemon = try await DaemonProcess.started(
            "retry: {attempts: 2, base-delay: 10ms, max-delay: 20ms}\n" + onlyDownloads,
            prefix: hostsFileAlone(in: place))
        _ = try await daemon.add("--paused", "http://127.0.0.1:1/1")
        #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded)
        #expect(try await daemon.dlctl("add", "--wait", server.url("/none")).status == .exited(1))
        try daemon.directory.write("downloads:\n  - ulr: x\n", to: "key.yaml")
        try daemon.directory.write("downloads:\n\t- x\n", to: "tab.yaml")
        try daemon.directory.write("http://h/1\nftp:/x\n", to: "list.txt")
        for mistake in Self.table {
            func filled(_ text: String) -> String {
                text.replacing("@DIR@", with: daemon.directory.path).replacing("@URL@", with: server.url("/none"))
            }
            let command = "exec \"$0\" \(filled(mistake.line))"
            let outcome = try await run(
                ["sh", "-c", command, DaemonProcess.program("dlctl")],
                environment: ["DLD_SOCKET": daemon.socket, "XDG_RUNTIME_DIR": "/nonexistent", "NO_COLOR": "1"])
            #expect(outcome.status == .exited(mistake.status), "\(mistake.testDescription): \(outcome)")
            for text in mistake.told {
                #expect(outcome.error.contains(filled(text)), "\(mistake.testDescription): \(outcome.error)")
            }
            #expect(!outcome.error.contains("Fatal") && outcome.error.split(separator: "\n").count <= 2, "\(outcome)")
        }
        #expect(daemon.isRunning)
    }

    @Test("who may not open the socket is told so, and what helps", .enabled(if: isRoot))
    func rights() async throws {
        let daemon = try DaemonProcess(mode: 0o755)
        try await daemon.start()
        let outcome = try await run([
            "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", DaemonProcess.program("dlctl"),
            "--socket", daemon.socket, "list",
        ])
        #expect(outcome.status == .exited(77), "\(outcome)")
        #expect(outcome.error.contains("this user may not open \(daemon.socket); join the group"))
    }

    @Test("the same name twice gives the second file a number, and says where it is")
    func sameName() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/b/a": [.status(200, body: "b")]])
        let daemon = try await DaemonProcess.started()
        for path in ["/a", "/b/a"] { #expect(try await daemon.dlctl("add", "--wait", server.url(path)).succeeded) }
        #expect(try await daemon.dlctl("show", "2").output.contains(daemon.path("a (1)")))
        let refused = try await daemon.dlctl("add", "--wait", "--on-conflict", "fail", server.url("/a"))
        #expect(refused.status == .exited(1) && refused.error.contains("name-conflict"), "\(refused)")
    }

    @Test("a full disk is waited out, and list says so", .enabled(if: isRoot))
    func fullDisk() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 4 * mebibyte))]])
        let daemon = try DaemonProcess(configuration: quickRetries + "disk: {min-free: 0}\n")
        let disk = try await Mount.tmpfs(at: daemon.downloads, bytes: 5 * mebibyte)
        try Resource(size: 3 * mebibyte).write(to: daemon.downloads + "/ballast")
        try await daemon.start()
        let id = try await daemon.add(server.url("/a"))
        try await daemon.state(of: id, "to wait") { $0.reason == .diskFull }
        // At times the task is just checking the disk.
        try await eventually(that: "the list says that the disk is full") {
            try await daemon.dlctl("list").output.contains("disk full, next check in")
        }
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("Ctrl-C ends the waiting with 130, and never the task")
    func interrupted() async throws {
        let server = try ScriptedServer(["/a": [.hang]])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/a"))
        let waiting = try ChildProcess(
            [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "wait", "\(id)"],
            directory: daemon.directory.path)
        try await eventually(that: "the server is asked") { !server.requests().isEmpty }
        // The signal must reach a client that has installed its handler.
        try await eventually(that: "the client sleeps on its socket") {
            (try? String(contentsOfFile: "/proc/\(waiting.pid)/wchan", encoding: .utf8))?.contains("poll") == true
        }
        waiting.kill(SIGINT)
        #expect(try await waiting.wait() == .exited(130))
        #expect(try daemon.task(id).state == .active)
    }
}
