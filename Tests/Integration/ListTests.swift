import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Tables of `dlctl` against a running daemon.
@Suite("Lists", .serialized, .timeLimit(.minutes(2)))
struct ListTests {
    /// A configuration under which nothing starts.
    private static let paused = "schedule: [{from: \"00:00\", to: \"24:00\", pause: true}]\n"

    private func ids(_ outcome: Outcome) -> [String] {
        outcome.lines.dropFirst().compactMap { $0.split(separator: " ").first.map(String.init) }
    }

    /// Runs dlctl on its own terminal.
    private func onTerminal(_ daemon: DaemonProcess, _ arguments: String, columns: Int = 80) async throws -> Outcome {
        let command =
            "stty cols \(columns) rows 24; \(try DaemonProcess.program("dlctl")) --socket \(daemon.socket) \(arguments)"
        return try await run(
            ["script", "-qec", command, "/dev/null"], environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8"],
            directory: daemon.directory.path)
    }

    @Test("the queue is listed in the order of start, and a move shows")
    func queue() async throws {
        let daemon = try await DaemonProcess.started(Self.paused)
        for name in ["a", "b", "c"] { _ = try await daemon.add("http://127.0.0.1:1/\(name)") }
        _ = try await daemon.add("--priority", "high", "http://127.0.0.1:1/d")
        func order() async throws -> [Int64] {
            let outcome = try await daemon.dlctl("list", "--queue", "--json")
            return try JSONDecoder().decode([TaskStatus].self, from: Data(outcome.output.utf8)).map(\.id.rawValue)
        }
        #expect(try await order() == [4, 1, 2, 3])
        #expect(try await daemon.dlctl("move", "3", "--first").succeeded)
        #expect(try await order() == [4, 3, 1, 2])
        let table = try await daemon.dlctl("list", "--queue", "--limit", "2")
        #expect(
            table.lines.map { $0.split(separator: " ").prefix(3).joined(separator: " ") } == [
                "# ID PRIORITY", "1 4 high", "2 3 normal",
            ])
        // A page ends behind a task, and the next one begins with the task after it.
        let rest: TaskListResult = try daemon.call(
            .taskList, TaskListParameters(limit: 2, after: TaskID(3), order: .queue))
        #expect(rest.tasks.map(\.id.rawValue) == [1, 2] && rest.next == nil)
        let refused = try await daemon.dlctl("rpc", "task.list", #"{"order":"queue","filter":{"states":["failed"]}}"#)
        #expect(refused.error.contains("filter.states"))
        #expect(try await daemon.dlctl("rpc", "task.list", #"{"order":"odd"}"#).error.contains("order"))
    }

    @Test("states are words, columns are fields, and a list is sorted by any of them")
    func columns() async throws {
        let daemon = try await DaemonProcess.started()
        for name in ["b", "c", "a"] { _ = try await daemon.add("--paused", "http://127.0.0.1:1/\(name)") }
        #expect(try await daemon.dlctl("cancel", "2").succeeded)
        #expect(ids(try await daemon.dlctl("list", "cancelled")) == ["2"])
        #expect(ids(try await daemon.dlctl("list", "cancelled", "paused")) == ["1", "2", "3"])
        #expect(ids(try await daemon.dlctl("list", "--sort", "url")) == ["3", "1", "2"])
        #expect(ids(try await daemon.dlctl("list", "--sort", "-url", "--limit", "1")) == ["2"])
        #expect(ids(try await daemon.dlctl("list", "--reverse")) == ["3", "2", "1"])
        let table = try await daemon.dlctl("list", "--columns", "id,state,url")
        #expect(table.lines.first == "ID  STATE      URL")
        #expect(table.lines.last == " 3  paused     http://127.0.0.1:1/a")
        let odd = try await daemon.dlctl("list", "--columns", "id,stat")
        #expect(odd.status == .exited(64))
        #expect(odd.error.contains("did you mean state?") && odd.error.contains("bytesFetched"))
        #expect(try await daemon.dlctl("list", "--sort", "odd").status == .exited(64))
        #expect(try await daemon.dlctl("list", "--owner", "no-such-user-x").status == .exited(64))
        #expect(ids(try await daemon.dlctl("list", "--owner", isRoot ? "root" : "\(getuid())")).count == 3)
    }

    @Test("a table on a terminal fits it, with wide characters too; elsewhere nothing is cut")
    func widths() async throws {
        let daemon = try await DaemonProcess.started()
        let name = String(repeating: "長い名前", count: 15) + ".iso"
        _ = try await daemon.add("--paused", "-o", name, "http://127.0.0.1:1/a")
        let narrow = try await onTerminal(daemon, "list")
        let line = narrow.output.split(whereSeparator: \.isNewline).last.map(String.init) ?? ""
        #expect(line.contains("…") && line.hasSuffix(".iso"), "\(narrow)")
        let width = line.unicodeScalars.reduce(0) { $0 + ($1.value >= 0x3000 ? 2 : 1) }
        #expect(width <= 80)
        #expect(try await daemon.dlctl("list").output.contains(name))
    }
}
