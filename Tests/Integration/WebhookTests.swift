import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Webhooks of a running daemon.
@Suite("Webhooks", .serialized, .timeLimit(Torture.patience))
struct WebhookTests {
    private static let secret = "canary-signature-key"

    private func daemon(_ receivers: String...) async throws -> DaemonProcess {
        try await DaemonProcess.started(Self.configuration(receivers))
    }

    private static func configuration(_ receivers: [String]) -> String {
        "notify:\n" + receivers.map { "  - {\($0), on: [started, completed], secret: \(secret)}\n" }.joined()
    }

    private func event(_ request: ScriptedServer.Request) throws -> TaskEvent {
        try JSONDecoder().decode(TaskEvent.self, from: Data(request.body))
    }

    /// Whether the signature of a message is right, as computed by another program.
    private func isSigned(_ request: ScriptedServer.Request) async throws -> Bool {
        let parts = (request.header("dld-signature") ?? "").split(separator: ",").map(String.init)
        guard parts.count == 2, parts[0].hasPrefix("t="), parts[1].hasPrefix("v1=") else { return false }
        let signed = parts[0].dropFirst(2) + "." + String(decoding: request.body, as: UTF8.self)
        let outcome = try await run(
            ["openssl", "dgst", "-sha256", "-hmac", Self.secret], input: String(signed))
        return outcome.output.contains(String(parts[1].dropFirst(3)))
    }

    /// Starts a receiver at a port that an earlier one has just left.
    private func receiver(at port: Int, _ answers: [ScriptedAnswer]) async throws -> ScriptedServer {
        try await eventually(have: "a receiver at port \(port)", within: .seconds(20)) {
            try? ScriptedServer(port: port, ["/h": answers])
        }
    }

    @Test("each event arrives, signed and in order for its task, though the receiver fails, hangs and is away in turn")
    func kills() async throws {
        let start = ContinuousClock.now
        let kills = Torture.isLong ? 20 : 6
        let count = Torture.isLong ? 2_000 : 60
        var random = SeededGenerator(seed: Torture.seed)
        let files = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", [.serve(Resource(size: 100))]) }))
        let some: [ScriptedAnswer] = (0..<40).map { _ in
            [.status(200), .status(200), .status(500), .hang].randomElement(using: &random) ?? .hang
        }
        // What the receiver does in the life of each daemon; without answers it is away.
        let turns: [[ScriptedAnswer]] = [some + [.status(200)], [.status(500)], [.hang], [], [.status(200)]]
        var receiver: ScriptedServer? = try ScriptedServer(["/h": turns[0]])
        let port = try #require(receiver?.port)
        let daemon = try await daemon("url: \"http://127.0.0.1:\(port)/h\"")
        var arrived: [ScriptedServer.Request] = []
        var sent = 0
        for kill in 1...kills {
            let next = count * kill / kills
            let list = (sent..<next).map { files.url("/\($0)") }.joined(separator: "\n")
            let input = try daemon.directory.write(list, to: "list.txt")
            #expect(try await daemon.dlctl("add", "--input", input).succeeded)
            sent = next
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...800, using: &random)))
            try await daemon.kill()
            receiver?.stop()
            arrived += receiver?.requests(for: "/h") ?? []
            // In the last life the receiver works.
            let answers = kill == kills ? [.status(200)] : turns[kill % turns.count]
            receiver = answers.isEmpty ? nil : try await self.receiver(at: port, answers)
            try await daemon.start()
        }
        try await eventually(that: "every download is done", within: .seconds(60)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        let journal = try await daemon.dlctl("events", "--on", "started,completed", "--json")
        let expected = Set(
            try journal.lines.map { try JSONDecoder().decode(TaskEvent.self, from: Data($0.utf8)).sequence })
        #expect(expected.count >= 2 * count)
        let earlier = Set(try arrived.map { try event($0).sequence })
        try await eventually(that: "every event has arrived", within: .seconds(120), every: .milliseconds(200)) {
            let found = Set(try (receiver?.requests(for: "/h") ?? []).map { try event($0).sequence })
            return found.union(earlier).isSuperset(of: expected)
        }
        arrived += receiver?.requests(for: "/h") ?? []
        for index in stride(from: 0, to: arrived.count, by: max(1, arrived.count / 50)) {
            #expect(try await isSigned(arrived[index]))
        }
        for (id, events) in Dictionary(grouping: try arrived.map(event), by: \.id) {
            #expect(events.map(\.sequence) == events.map(\.sequence).sorted(), "task \(id.map(String.init) ?? "none")")
        }
        for (key, requests) in Dictionary(grouping: arrived, by: { $0.header("idempotency-key") ?? "" }) {
            #expect(Set(try requests.map { try event($0).sequence }).count == 1, "\(key)")
        }
        Torture.note(
            "webhooks: \(kills) kills, \(expected.count) events, \(arrived.count) messages, "
                + "\((ContinuousClock.now - start).components.seconds) s")
    }

    @Test("a receiver that was away gets all that has happened, and the status tells two of one host apart")
    func away() async throws {
        let files = try ScriptedServer(["/f": [.serve(Resource(size: 100))]])
        let gone = try ScriptedServer([:])
        let port = gone.port
        gone.stop()
        let daemon = try await daemon("url: \"http://127.0.0.1:\(port)/h\"", "url: \"http://127.0.0.1:\(port)/other\"")
        for _ in 0..<30 { #expect(try await daemon.dlctl("add", files.url("/f")).succeeded) }
        try await eventually(that: "every download is done") {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        try await eventually(that: "the failures are shown") {
            let output = try await daemon.dlctl("status").output
            return output.contains("1. http://127.0.0.1:\(port)/h: fails for")
                && output.contains("2. http://127.0.0.1:\(port)/oth…: fails for") && output.contains("60 events wait")
        }
        let back = try await receiver(at: port, [.status(200)])
        try await eventually(that: "all arrives") {
            Set(try back.requests(for: "/h").map { try event($0).sequence }).count >= 60
        }
    }

    @Test("an event of a backup keeps its key, and events of two journals that fork have different keys")
    func restored() async throws {
        let files = try ScriptedServer(["/f": [.serve(Resource(size: 100))]])
        let broken = try ScriptedServer(["/h": [.status(503)]])
        let port = broken.port
        let original = try await daemon("url: \"http://127.0.0.1:\(port)/h\"")
        let backup = original.directory.file("copy.db")
        func add(_ daemon: DaemonProcess) async throws {
            #expect(try await daemon.dlctl("add", "--wait", files.url("/f")).succeeded)
        }
        func messages(_ daemon: DaemonProcess, _ receiver: ScriptedServer) async throws -> [String: TaskEvent] {
            try await eventually(that: "four events have arrived", within: .seconds(60)) {
                Set(receiver.requests(for: "/h").map { $0.header("idempotency-key") }).count == 4
            }
            try await daemon.kill()
            receiver.stop()
            return Dictionary(
                try receiver.requests(for: "/h").map { ($0.header("idempotency-key") ?? "", try event($0)) }
            ) { first, _ in first }
        }
        try await add(original)
        try await eventually(that: "an event is refused") { !broken.requests(for: "/h").isEmpty }
        #expect(try await original.dlctl("backup", backup).succeeded)
        broken.stop()
        let first = try await receiver(at: port, [.status(200)])
        try await add(original)
        let before = try await messages(original, first)

        let copy = try DaemonProcess(
            configuration: Self.configuration(["url: \"http://127.0.0.1:\(port)/h\""]))
        try FileManager.default.copyItem(atPath: backup, toPath: copy.stateDirectory + "/dld.db")
        let second = try await receiver(at: port, [.status(200)])
        try await copy.start()
        try await add(copy)
        let after = try await messages(copy, second)
        #expect(before.values.map(\.sequence).sorted() == after.values.map(\.sequence).sorted())
        let common = Set(before.keys).intersection(after.keys)
        #expect(common.count == 2)
        #expect(common.allSatisfy { before[$0]?.id == TaskID(1) && before[$0]?.sequence == after[$0]?.sequence })
    }

    @Test("a receiver that hangs delays neither others nor transfers, and the status says that it fails")
    func hanging() async throws {
        let files = try ScriptedServer(["/f": [.serve(Resource(size: 100))]])
        let receiver = try ScriptedServer(["/hang": [.hang], "/ok": [.status(200)], "/bad": [.status(500)]])
        let daemon = try await daemon(
            "url: \"\(receiver.url("/hang"))\"", "url: \"\(receiver.url("/ok"))\"", "url: \"\(receiver.url("/bad"))\"")
        for _ in 0..<20 { #expect(try await daemon.dlctl("add", "--wait", files.url("/f")).succeeded) }
        try await eventually(that: "the others are told all") {
            Set(try receiver.requests(for: "/ok").map { try event($0).sequence }).count >= 40
        }
        #expect(receiver.requests(for: "/hang").count <= 4)
        let status = try await daemon.dlctl("status")
        #expect(status.output.contains("server replied 500"), "\(status.output)")
        // A daemon that ends does not wait for the receiver.
        let start = ContinuousClock.now
        try await daemon.terminate()
        #expect(ContinuousClock.now - start < .seconds(5))
    }

    @Test("the URL's and the headers' secrets and the key of the signature are shown nowhere")
    func secrets() async throws {
        let files = try ScriptedServer(["/f": [.serve(Resource(size: 100))]])
        let receiver = try ScriptedServer(["/canary-path": [.status(500)]])
        let url = receiver.url("/canary-path?token=canary-token").replacing(
            "http://", with: "http://u:canary-password@")
        let daemon = try await daemon("url: \"\(url)\", headers: [\"Authorization: canary-header\"]")
        #expect(try await daemon.dlctl("add", "--wait", files.url("/f")).succeeded)
        try await eventually(that: "a message has arrived") { !receiver.requests().isEmpty }
        #expect(receiver.requests().first?.header("authorization") == "canary-header")
        try await eventually(that: "the failure is known") {
            try await daemon.dlctl("status").output.contains("server replied")
        }
        for command in [["status"], ["status", "--json"], ["events", "--json"], ["list", "--json"]] {
            #expect(!(try await daemon.dlctl(command).output.contains("canary")), "\(command)")
        }
        #expect(!daemon.log.contains("canary"), "\(daemon.log)")
        try await daemon.terminate()
        let database = try Data(contentsOf: URL(filePath: "\(daemon.stateDirectory)/dld.db"))
        #expect(!String(decoding: database, as: UTF8.self).contains("canary"))
    }
}
