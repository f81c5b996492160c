import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Commands that select tasks by a filter, and ask for confirmation if they affect many.
@Suite("Selections", .serialized, .timeLimit(.minutes(1)))
struct SelectionTests {
    /// Returns a daemon with two paused tasks of its own user.
    private func daemon(_ configuration: String = "") async throws -> DaemonProcess {
        let daemon = try DaemonProcess(configuration: quickRetries + configuration, mode: 0o755)
        try await daemon.start()
        for name in ["a", "b"] { _ = try await daemon.add("--paused", "http://127.0.0.1:1/\(name)") }
        return daemon
    }

    /// Runs dlctl on its own terminal and types `input`.
    private func onTerminal(_ daemon: DaemonProcess, _ arguments: String, typing input: String) async throws -> Outcome
    {
        let command = "\(try DaemonProcess.program("dlctl")) --socket \(daemon.socket) \(arguments)"
        return try await run(["script", "-qec", command, "/dev/null"], directory: daemon.directory.path, input: input)
    }

    private static let files = "(2 paused; finished files stay, parts of unfinished ones are deleted)"

    @Test("on a terminal --all asks with a count, and anything but yes changes nothing")
    func asks() async throws {
        let daemon = try await daemon()
        for answer in ["n\n", "\n", "yess\n"] {
            let outcome = try await onTerminal(daemon, "remove --all", typing: answer)
            #expect(outcome.status == .exited(1), "\(outcome)")
            #expect(outcome.output.contains("remove 2 tasks \(Self.files)? [y/N]"), "\(outcome)")
            #expect(outcome.output.contains("no task was removed"))
            #expect(try daemon.tasks().count == 2)
        }
        let yes = try await onTerminal(daemon, "remove --all", typing: "y\n")
        #expect(yes.status == .exited(0) && yes.output.contains("2 tasks removed"), "\(yes)")
        #expect(try daemon.tasks().isEmpty)
        // A command that would change nothing asks for no confirmation.
        #expect(try await onTerminal(daemon, "pause --all", typing: "").status == .exited(0))
    }

    @Test("on a terminal remove asks for several tasks of a filter or with --delete-file, other commands do not")
    func several() async throws {
        let daemon = try await daemon()
        let filtered = try await onTerminal(daemon, "remove paused", typing: "n\n")
        #expect(filtered.status == .exited(1), "\(filtered)")
        #expect(filtered.output.contains("remove 2 tasks \(Self.files)? [y/N]"), "\(filtered)")
        let files = try await onTerminal(daemon, "remove --delete-file 1 2", typing: "n\n")
        #expect(files.status == .exited(1), "\(files)")
        #expect(
            files.output.contains("remove 2 tasks (2 paused; finished files and parts are deleted)? [y/N]"), "\(files)")
        let named = try await onTerminal(daemon, "cancel paused", typing: "")
        #expect(named.status == .exited(0) && named.output.contains("2 tasks cancelled"), "\(named)")
        let single = try await onTerminal(daemon, "remove --search 1/a", typing: "")
        #expect(single.status == .exited(0) && single.output.contains("1 task removed"), "\(single)")
        let all = try await onTerminal(daemon, "remove --all --yes", typing: "")
        #expect(all.status == .exited(0) && all.output.contains("1 task removed"), "\(all)")
    }

    @Test("without a terminal a filter of one's own tasks acts without a question")
    func own() async throws {
        let daemon = try await daemon()
        let filtered = try await daemon.dlctl("remove", "paused", "--delete-file")
        #expect(filtered.succeeded && filtered.output == "2 tasks removed\n", "\(filtered)")
    }

    @Test("--dry-run names the tasks and changes none")
    func dryRun() async throws {
        let daemon = try await daemon()
        let table = try await daemon.dlctl("remove", "--all", "--dry-run")
        #expect(table.succeeded && table.lines.count == 3, "\(table)")
        #expect(table.error.contains("2 tasks would be removed; nothing was changed"))
        #expect(try await daemon.dlctl("retry", "--all", "--dry-run").error.contains("0 tasks would be retried"))
        let json = try await daemon.dlctl("cancel", "1", "2", "--dry-run", "--json")
        #expect(
            try JSONDecoder().decode([TaskStatus].self, from: Data(json.output.utf8)).map(\.state) == [
                .paused, .paused,
            ])
        let unknown = try await daemon.dlctl("cancel", "1", "99", "--dry-run")
        #expect(unknown.status == .exited(1) && unknown.error.contains("no task has the id 99"), "\(unknown)")
        #expect(
            try await daemon.dlctl("set", "--all", "--limit", "1K", "--dry-run").error.contains(
                "2 tasks would be changed"))
        #expect(try daemon.tasks().map(\.state) == [.paused, .paused])
    }

    @Test("a range of ids selects the tasks that there are, and is an error if there are none")
    func ranges() async throws {
        let daemon = try await daemon()
        let cancelled = try await daemon.dlctl("cancel", "2-900")
        #expect(cancelled.succeeded && cancelled.output == "1 task cancelled\n", "\(cancelled)")
        let none = try await daemon.dlctl("show", "1", "5-9")
        #expect(none.status == .exited(1) && none.error.contains("no task has an id from 5 to 9"), "\(none)")
        let shown = try await daemon.dlctl("show", "1-2", "--json")
        let tasks = try JSONDecoder().decode([TaskStatus].self, from: Data(shown.output.utf8))
        #expect(tasks.map(\.id.rawValue) == [1, 2])
    }

    @Test("--quiet leaves sentences out, and --verbose tells the calls without their contents")
    func quiet() async throws {
        let daemon = try await daemon()
        let quiet = try await daemon.dlctl("-q", "resume", "1", "--now")
        #expect(quiet.succeeded && quiet.output.isEmpty && quiet.error.isEmpty, "\(quiet)")
        let refused = try await daemon.dlctl("show", "9", "--quiet")
        #expect(refused.status == .exited(1) && refused.error.contains("no task has the id 9"))
        let verbose = try await daemon.dlctl("add", "-v", "--paused", "--header", "X: secret", "http://127.0.0.1:1/c")
        #expect(verbose.output == "3\n" && verbose.error.contains("dlctl: task.add: answered in "), "\(verbose)")
        #expect(!verbose.error.contains("secret"))
    }

    @Test("root without a terminal acts on its own tasks alone, unless --yes says otherwise", .enabled(if: isRoot))
    func others() async throws {
        let daemon = try await daemon("control: {mode: 0666}\n")
        let client = try DaemonProcess.program("dlctl")
        let added = try await run([
            "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", client, "--socket", daemon.socket,
            "add", "--paused", "http://127.0.0.1:1/c",
        ])
        #expect(added.succeeded, "\(added)")
        for command in [["remove", "--all"], ["cancel", "--state", "paused"]] {
            let refused = try await daemon.dlctl(command)
            #expect(refused.status == .exited(64), "\(refused)")
            #expect(
                refused.error.contains("3 tasks, 1 of them owned by other users (uid 65534: 1) would be"),
                "\(refused.error)")
            #expect(refused.error.contains("confirm with --yes, select only your own tasks with --owner 0"))
        }
        #expect(try daemon.tasks().map(\.state) == [.paused, .paused, .paused])
        let listed = try await daemon.dlctl("remove", "--all", "--dry-run")
        #expect(listed.output.contains("c  (uid 65534)"), "\(listed.output)")
        let mine = try await daemon.dlctl("remove", "--all", "--owner", "0")
        #expect(mine.succeeded && mine.output.contains("2 tasks removed"), "\(mine)")
        let asked = try await onTerminal(daemon, "remove --state paused", typing: "n\n")
        #expect(
            asked.output.contains("remove 1 task, owned by other users (uid 65534: 1) (1 paused; "), "\(asked.output)")
        #expect(try await daemon.dlctl("remove", "--all", "--yes").output.contains("1 task removed"))
    }

    @Test("task.count tells how many tasks a filter selects, by owner")
    func count() async throws {
        let daemon = try await daemon()
        let all: TaskCountResult = try daemon.call(.taskCount, TaskCountParameters())
        #expect(all == TaskCountResult(owners: [.init(owner: getuid(), tasks: 2)]))
        let none: TaskCountResult = try daemon.call(
            .taskCount, TaskCountParameters(filter: TaskFilter(states: [.failed])))
        #expect(none == TaskCountResult(owners: []))
    }
}
