import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// A user who names another user's tasks, batches and queues in every method and on every screen.
@Suite(
    "Tasks of another user", .serialized, .timeLimit(.minutes(3)),
    .enabled(if: isRoot, "only root can become other users"))
struct ForeignTaskTests {
    private static let (alice, bob) = (UInt32(64_101), UInt32(64_102))
    /// The id of her task, with tasks of root before it. A number of two digits does not occur in answers by chance.
    private static let hers = 37
    private static let unknown = 424_242
    /// A text that is in the URL, the path, the batch and the key of her task, and nowhere else.
    private static let word = "alicesown"

    private let server: ScriptedServer
    private let daemon: DaemonProcess
    /// The id of his own task.
    private let his: TaskID

    init() async throws {
        server = try ScriptedServer(["/\(Self.word)": [.status(503)], "/his": [.status(404)]])
        daemon = try DaemonProcess(
            configuration: "control: {mode: 0666}\ndownloads: {layout: per-user}\n" + quickRetries, mode: 0o755)
        try await daemon.start()
        let before = (1..<Self.hers).map { _ in "http://127.0.0.1:1/root\n" }.joined()
        #expect(try await daemon.dlctl(["add", "--paused", "--input", "-"], input: before).succeeded)
        let added = try await Self.run(
            as: Self.alice, daemon, "add", "--wait", "--batch", Self.word, "--key", Self.word, "-d", Self.word,
            server.url("/\(Self.word)"))
        try #require(added.lines.first == "\(Self.hers)", "\(added)")
        let own = try await Self.run(as: Self.bob, daemon, "add", "--paused", "--batch", "his", server.url("/his"))
        his = TaskID(try #require(own.lines.first.flatMap { Int64($0) }, "\(own)"))
    }

    private static func command(_ uid: UInt32) -> [String] {
        ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
    }

    private static func run(
        as uid: UInt32, _ daemon: DaemonProcess, _ arguments: String...
    ) async throws -> Outcome {
        try await TestSupport.run(
            command(uid) + [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments,
            within: .seconds(60))
    }

    /// Sends requests in this order on one connection of a user, and returns the responses.
    private func responses(_ uid: UInt32, _ requests: [String]) async throws -> [String] {
        let script = """
            import os, socket, sys
            user = int(sys.argv[2])
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            s = socket.socket(socket.AF_UNIX)
            s.connect(sys.argv[1])
            answers = s.makefile()
            for line in sys.stdin:
                s.sendall(line.encode())
                print(answers.readline(), end="")
            """
        let outcome = try await TestSupport.run(
            ["python3", "-c", script, daemon.socket, "\(uid)"],
            input: requests.map { $0 + "\n" }.joined(), within: .seconds(60))
        #expect(outcome.succeeded && outcome.lines.count == requests.count, "\(outcome)")
        return outcome.lines
    }

    /// The methods that name a task, with `ID` for it and `HIS` for a task of the caller.
    private var requestsByID: [(String, String)] {
        let selection = #"{"ids":[ID]}"#
        var requests = ["pause", "resume", "cancel", "retry", "remove"].map { ("task.\($0)", selection) }
        requests += [
            ("task.get", #"{"id":ID}"#), ("task.remove", #"{"ids":[ID],"deleteFile":true}"#),
            ("task.pause", #"{"ids":[ID,ID]}"#), ("task.move", #"{"id":ID,"first":true}"#),
            ("task.move", #"{"id":ID,"last":true}"#), ("task.move", #"{"id":HIS,"before":ID}"#),
            ("task.add", #"{"tasks":[{"url":"http://127.0.0.1:1/x","afterTask":ID}]}"#),
            ("source.attach", #"{"id":ID,"descriptor":0}"#), ("events.list", selection),
            ("events.list", #"{"ids":[ID],"after":0,"types":["added","failed"]}"#),
        ]
        let changes = [
            #""priority":"high""#, #""url":"http://127.0.0.1:1/y""#, #""directory":"d""#, #""password":"p""#,
            #""limit":1"#, #""output":"o""#,
        ]
        requests += changes.map { ("task.update", "{\"id\":ID,\"changes\":{\($0)}}") }
        requests.append(("task.update", #"{"ids":[ID],"changes":{"limit":1}}"#))
        return requests
    }

    /// The methods that select tasks by `NAME`: an owner, a batch, a text or the number of a queue.
    private func requests(owner: UInt32, batch: String, queue: Int) -> [(String, String)] {
        let filters = [
            "\"owner\":\(owner)", "\"batch\":\"\(batch)\"", "\"search\":\"\(batch)\"",
            "\"owner\":\(owner),\"states\":[\"failed\"]",
        ]
        var requests = filters.flatMap { filter in
            ["list", "count", "pause", "resume", "cancel", "retry", "remove"].map {
                ("task.\($0)", "{\"filter\":{\(filter)}}")
            }
        }
        requests += filters.map { ("task.update", "{\"filter\":{\($0)},\"changes\":{\"priority\":\"low\"}}") }
        requests += [
            ("events.list", "{\"owner\":\(owner)}"), ("events.list", "{\"batch\":\"\(batch)\",\"after\":0}"),
            ("task.list", "{\"filter\":{\"batch\":\"\(batch)\"},\"order\":\"queue\"}"),
            ("queue.put", "{\"queue\":\(queue),\"entries\":[\"http://127.0.0.1:1/z\"]}"),
            ("queue.commit", "{\"queue\":\(queue),\"dryRun\":true}"), ("queue.commit", "{\"queue\":\(queue)}"),
            ("queue.abort", "{\"queue\":\(queue)}"),
        ]
        return requests
    }

    private func line(_ method: String, _ parameters: String) -> String {
        "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"\(method)\",\"params\":\(parameters)}"
    }

    @Test("A35: every method answers another user's id, batch, owner and queue as it answers unknown ones")
    func everyMethod() async throws {
        let before = try daemon.tasks().filter { $0.owner == Self.alice }
        let begun = try await responses(Self.alice, [line("queue.begin", "{\"batch\":\"\(Self.word)\"}")])
        let queue = try #require(begun.first?.firstMatch(of: #/"queue":(\d+)/#).flatMap { Int($0.1) }, "\(begun)")
        func filled(_ text: String, _ id: Int) -> String {
            text.replacing("ID", with: "\(id)").replacing("HIS", with: "\(his)")
        }
        let byID = requestsByID
        let known = requests(owner: Self.alice, batch: Self.word, queue: queue)
        let unknown = requests(owner: 64_999, batch: "nobodys", queue: 9_999)
        let lines =
            byID.flatMap { [line($0.0, filled($0.1, Self.hers)), line($0.0, filled($0.1, Self.unknown))] }
            + zip(known, unknown).flatMap { [line($0.0, $0.1), line($1.0, $1.1)] }
        let answers = try await responses(Self.bob, lines)
        try #require(answers.count == lines.count)
        func masked(_ text: String, _ number: Int) throws -> String {
            text.replacing(try Regex("\\b\(number)\\b"), with: "N")
        }
        for index in stride(from: 0, to: lines.count, by: 2) {
            let isByID = index < 2 * byID.count
            let one = try masked(answers[index], isByID ? Self.hers : queue)
            let other = try masked(answers[index + 1], isByID ? Self.unknown : 9_999)
            #expect(one == other, "\(lines[index])")
            #expect(!answers[index].contains(Self.word), "\(answers[index])")
        }
        #expect(try daemon.tasks().filter { $0.owner == Self.alice } == before)
        // Her queue is still hers, and empty.
        let put = try await responses(
            Self.alice, [line("queue.put", "{\"queue\":\(queue),\"entries\":[\"http://127.0.0.1:1/z\"]}")])
        #expect(put.first?.contains("\"entries\":1") == true, "\(put)")
    }

    @Test("A35: what tells of the daemon, the queues and the waiting tasks of one user tells nothing of another's")
    func everyAnswer() async throws {
        let methods = ["task.list", "task.count", "queue.list", "daemon.status", "daemon.limits", "rpc.discover"]
        let answers = try await responses(
            Self.bob, methods.map { line($0, "{}") } + [line("events.list", #"{"after":0}"#)])
        for answer in answers {
            #expect(!answer.contains(Self.word) && !answer.contains("\"owner\":\(Self.alice)"), "\(answer)")
        }
        for method in ["daemon.reload", "daemon.shutdown", "daemon.backup"] {
            let refused = try await responses(Self.bob, [line(method, "{}")])
            #expect(refused.first?.contains("-32003") == true, "\(refused)")
        }
        #expect(daemon.answers)
    }

    @Test("A35, A37: no command, screen or completion shows another user's task, or that there is one")
    func everyCommand() async throws {
        let commands = [
            ["show", "ID"], ["show", "ID", "--json"], ["watch", "ID"], ["watch", "ID", "--json"], ["wait", "ID"],
            ["wait", "ID", "--json"], ["events", "ID", "--after", "0"], ["events", "ID", "--after", "0", "--json"],
            ["set", "ID", "--limit", "1"], ["move", "ID", "--first"], ["list", "--after", "ID", "--owner", "64101"],
            ["add", "--after-task", "ID", "http://127.0.0.1:1/x"],
        ]
        for command in commands {
            var told: Set<String> = []
            for id in [Self.hers, Self.unknown] {
                let outcome = try await TestSupport.run(
                    Self.command(Self.bob) + [DaemonProcess.program("dlctl"), "--socket", daemon.socket]
                        + command.map { $0 == "ID" ? "\(id)" : $0 }, within: .seconds(60))
                let text = (outcome.output + outcome.error).replacing("\(id)", with: "N")
                #expect(!text.contains(Self.word), "\(command): \(text)")
                told.insert("\(outcome.status) \(text)")
            }
            #expect(told.count == 1, "\(command): \(told)")
        }
        for shell in ["bash", "zsh", "fish"] {
            for (command, position) in [("show", "positional@0"), ("list", "--batch"), ("add", "positional@0")] {
                let program = try DaemonProcess.program("dlctl")
                // His own words show that the daemon has answered within the 40 ms that it has.
                let words = try await eventually(have: "words for \(command)") {
                    let outcome = try await TestSupport.run(
                        Self.command(Self.bob)
                            + [program, "---completion", command, "--", position, "2", "0", "dlctl", command, ""],
                        environment: ["SAP_SHELL": shell, "DLD_SOCKET": daemon.socket])
                    return outcome.output.contains { !$0.isWhitespace } ? outcome.output : nil
                }
                let lines = words.split(separator: "\n").filter { $0.contains { !$0.isWhitespace } }
                #expect(lines.count == 1 && !words.contains(Self.word), "\(shell) \(command): \(words)")
            }
        }
        let top = try PseudoTerminal(
            Self.command(Self.bob) + [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "top"], columns: 200)
        try await top.wait(for: "his")
        top.type("F")
        try await top.wait(for: "[all")
        top.type("H")
        try await top.wait(for: "1 task")
        top.type("q")
        #expect(try await top.child.wait() == .exited(0))
        #expect(!top.output.contains(Self.word) && !top.output.contains("root"), "\(top.output)")
    }

    @Test("A35: a subscription to another user's task, batch or uid gets his own events, and none of hers")
    func subscriptions() async throws {
        let hers = "\(Self.hers)"
        let filters = [
            [], [hers, "\(his)"], ["--on", "added,updated,failed,retried,removed,batch-finished,progress"],
        ]
        let program = try DaemonProcess.program("dlctl")
        func follow(_ arguments: [String]) throws -> ChildProcess {
            try ChildProcess(
                Self.command(Self.bob)
                    + [program, "--socket", daemon.socket, "events", "--follow", "--after", "0", "--json"] + arguments)
        }
        let followers = try filters.map(follow)
        let silent = try [["--owner", "\(Self.alice)"], ["--batch", Self.word], [hers]].map(follow)
        #expect(try await Self.run(as: Self.alice, daemon, "retry", hers).succeeded)
        #expect(try await Self.run(as: Self.alice, daemon, "wait", hers).status == .exited(1))
        #expect(try await Self.run(as: Self.alice, daemon, "remove", hers).succeeded)
        #expect(try await Self.run(as: Self.bob, daemon, "set", "\(his)", "--limit", "1M").succeeded)
        for follower in followers {
            try await eventually(that: "his own event has arrived") { follower.standardOutput.contains("\"updated\"") }
            let events = try follower.standardOutput.split(separator: "\n").map {
                try JSONDecoder().decode(TaskEvent.self, from: Data($0.utf8))
            }
            #expect(events.allSatisfy { $0.owner == Self.bob && $0.id == his }, "\(events)")
        }
        for follower in silent { #expect(follower.standardOutput.isEmpty, "\(follower.standardOutput)") }
    }
}
