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
        try await DaemonProcess.started(
            "notify:\n" + receivers.map { "  - {\($0), on: [started, completed], secret: \(Self.secret)}\n" }.joined())
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

    @Test("each event arrives, signed and in order for its task, though the receiver fails, hangs and is away")
    func kills() async throws {
        let kills = Torture.isLong ? 20 : 6
        let count = Torture.isLong ? 2_000 : 60
        var random = SeededGenerator(seed: Torture.seed)
        let files = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", [.serve(Resource(size: 100))]) }))
        // Half of the first messages fail.
        let answers: [ScriptedAnswer] = (0..<count).map { _ in
            Bool.random(using: &random) ? .status(200) : Bool.random(using: &random) ? .status(500) : .hang
        }
        var receiver = try ScriptedServer(["/h": answers + [.status(200)]])
        let port = receiver.port
        let daemon = try await daemon("url: \"\(receiver.url("/h"))\"")
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
            if kill == kills / 2 {
                // The receiver is away for a while, and has no memory afterwards.
                receiver.stop()
                arrived += receiver.requests(for: "/h")
                try await daemon.start()
                try await Task.sleep(for: .milliseconds(500))
                receiver = try ScriptedServer(port: port, ["/h": [.status(500), .status(200)]])
            } else {
                try await daemon.start()
            }
        }
        try await eventually(that: "every download is done", within: .seconds(60)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        let journal = try await daemon.dlctl("events", "--on", "started,completed", "--json")
        let expected = Set(
            try journal.lines.map { try JSONDecoder().decode(TaskEvent.self, from: Data($0.utf8)).sequence })
        #expect(expected.count >= 2 * count)
        try await eventually(that: "every event has arrived", within: .seconds(120)) {
            let found = Set(try (arrived + receiver.requests(for: "/h")).map { try event($0).sequence })
            return found.isSuperset(of: expected)
        }
        arrived += receiver.requests(for: "/h")
        for request in arrived.prefix(50) { #expect(try await isSigned(request)) }
        for (id, events) in Dictionary(grouping: try arrived.map(event), by: \.id) {
            #expect(events.map(\.sequence) == events.map(\.sequence).sorted(), "task \(id.map(String.init) ?? "none")")
        }
        for (key, requests) in Dictionary(grouping: arrived, by: { $0.header("idempotency-key") ?? "" }) {
            #expect(Set(try requests.map { try event($0).sequence }).count == 1, "\(key)")
        }
        Torture.note("webhooks: \(kills) kills, \(expected.count) events, \(arrived.count) messages")
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
