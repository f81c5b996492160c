import ControlClient
import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

/// The client for apps against a running daemon.
@Suite("The client for apps", .serialized, .timeLimit(.minutes(5)))
struct AppClientTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func connect(_ daemon: DaemonProcess) async throws -> DLDClient {
        try await DLDClient.connect(socket: daemon.socket)
    }

    @Test("a download has a file, and its progress grows up to all bytes")
    func download() async throws {
        let resource = Resource(size: 3_000_000)
        let server = try ScriptedServer(["/a": [.drip(resource, bytesPerSecond: 2_000_000)]])
        let daemon = try await DaemonProcess.started()
        let client = try await connect(daemon)
        let task = try await client.download(server.url("/a"), to: daemon.path("x/a"), key: "a")
        var seen: [DLDProgress] = []
        for await progress in task.progress { seen.append(progress) }
        let file = try await task.value
        #expect(file.path == daemon.path("x/a") && file.bytes == 3_000_000 && !file.isVerified)
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(seen.map(\.bytesDone) == seen.map(\.bytesDone).sorted())
        #expect(seen.last?.state == .completed && seen.last?.fraction == 1)
        #expect(seen.contains { $0.state == .active && $0.bytesDone > 0 && $0.bytesDone < 3_000_000 })
        #expect(try await client.download(server.url("/a"), to: daemon.path("x/a"), key: "a").id == task.id)
    }

    @Test("an upload is sent, and its file is the source")
    func upload() async throws {
        let daemon = try await DaemonProcess.started("uploads: {roots: [\(place.path)]}\n")
        let receiver = try await Nginx([.custom("/", "dav_methods PUT; root \(place.path); client_max_body_size 0;")])
        let source = try place.write("contents", to: "source.txt")
        let client = try await connect(daemon)
        let task = try await client.upload(source, to: receiver.url("/target.txt"))
        #expect(try await task.value.path == source)
        #expect(try text(of: place.file("target.txt")) == "contents")
    }

    @Test("a failure tells its reason, a removed task that it is gone, a wrong URL the field")
    func failures() async throws {
        let server = try ScriptedServer(["/none": [.status(404)], "/slow": [.hang]])
        let daemon = try await DaemonProcess.started()
        let client = try await connect(daemon)
        let failing = try await client.download(server.url("/none"))
        let error = await #expect(throws: DLDTaskError.self) { try await failing.value }
        guard case .ended(let status) = error else { throw Unusable(reason: "\(String(describing: error))") }
        #expect(status.state == .failed && status.error?.code.rawValue == "http-404")
        let slow = try await client.download(server.url("/slow"))
        let waiting = Task { try await slow.value }
        try await slow.remove()
        await #expect(throws: DLDTaskError.removed(slow.id)) { try await waiting.value }
        #expect(try await client.task(slow.id) == nil)
        await #expect(throws: DLDTaskError.removed(slow.id)) { try await slow.status }
        await #expect(throws: ClientError.self) { try await client.download("gopher://x") }
    }

    @Test("cancelling the Swift task leaves the transfer alone, unless it is to be cancelled too")
    func cancellation() async throws {
        let server = try ScriptedServer(["/a": [.drip(Resource(size: 1_000_000), bytesPerSecond: 100_000)]])
        let daemon = try await DaemonProcess.started()
        let client = try await connect(daemon)
        let task = try await client.download(server.url("/a"))
        for policy in [DLDTask.CancellationPolicy.leave, .cancelTransfer] {
            let waiting = Task { try await task.value(whenCancelled: policy) }
            _ = await task.progress.first { $0.bytesDone > 0 }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            #expect(try await task.status.state == (policy == .leave ? .active : .cancelled))
        }
    }

    @Test("hundreds of waits share a connection, over kills of the daemon")
    func manyWaits() async throws {
        let count = 200
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", [.serve(Resource(size: 20_000))]) }))
        let daemon = try await DaemonProcess.started("\(quickRetries)\nlimits: {active-tasks: 4, download-rate: 1M}\n")
        let client = try await connect(daemon)
        let paths = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<count {
                group.addTask {
                    try await client.download(server.url("/\(number)"), to: daemon.path("\(number)")).value.path
                }
            }
            group.addTask {
                for _ in 0..<2 {
                    try await Task.sleep(for: .milliseconds(900))
                    try await daemon.kill()
                    try await Task.sleep(for: .milliseconds(200))
                    try await daemon.start()
                }
                return ""
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(paths.count == count + 1)
        #expect(try daemon.tasks().count == count, "no download was queued twice")
    }

    @Test("events continue over kills of the daemon, with none lost or doubled")
    func events() async throws {
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<60).map { ("/\($0)", [.serve(Resource(size: 1_000))]) }))
        let daemon = try await DaemonProcess.started()
        let client = try await connect(daemon)
        let filter = EventFilter(types: [.completed])
        let events = try await client.eventsFromNow(filter: filter)
        let reading = Task {
            var cursors: [EventCursor?] = []
            for try await event in events {
                cursors.append(event.cursor)
                if cursors.count == 60 { break }
            }
            return cursors
        }
        for part in 0..<3 {
            for number in 0..<20 { _ = try await client.download(server.url("/\(part * 20 + number)")) }
            try await daemon.kill()
            try await daemon.start()
        }
        let live = try await reading.value
        var past: [EventCursor?] = []
        for try await event in client.events(
            after: EventCursor(journal: live[0]?.journal ?? "", sequence: 0), filter: filter)
        {
            past.append(event.cursor)
            if past.count == 60 { break }
        }
        #expect(live == past)
        #expect(Set(live).count == 60)
    }

    @Test("cancelling the reader of events ends it at once, and a reader that breaks off closes its connection")
    func endOfReading() async throws {
        let daemon = try await DaemonProcess.started()
        try await eventually(that: "the test's own connections are closed") { try connections(daemon) == 0 }
        let client = try await connect(daemon)
        let reading = Task { try await client.events().first { _ in true } }
        try await eventually(that: "it subscribes") { try connections(daemon) == 2 }
        reading.cancel()
        #expect(try await reading.value == nil)
        try await eventually(that: "its connection is closed") { try connections(daemon) == 1 }
    }

    /// Returns the number of connections that the daemon has not closed.
    private func connections(_ daemon: DaemonProcess) throws -> Int {
        // The sixth column of proc_net_unix(5) is the state; 03 means connected.
        try text(of: "/proc/net/unix").split(separator: "\n").count { line in
            line.hasSuffix(" \(daemon.socket)") && line.split(separator: " ").dropFirst(5).first == "03"
        }
    }

    @Test("the progress of a task goes on when only the sequence is left of the client", .timeLimit(.minutes(1)))
    func sequenceAlone() async throws {
        let server = try ScriptedServer(["/a": [.drip(Resource(size: 500_000), bytesPerSecond: 500_000)]])
        let daemon = try await DaemonProcess.started()
        func progress() async throws -> DLDProgressSequence {
            try await DLDClient.connect(socket: daemon.socket).download(server.url("/a")).progress
        }
        var last: DLDProgress?
        for await progress in try await progress() { last = progress }
        #expect(last?.state == .completed)
    }

    // MARK: An app that quits

    private func app(_ daemon: DaemonProcess, _ arguments: String...) throws -> ChildProcess {
        try ChildProcess(
            [DaemonProcess.program("BackgroundApp")] + arguments,
            environment: ["XDG_STATE_HOME": place.path, "DLD_SOCKET": daemon.socket])
    }

    private func collect(_ daemon: DaemonProcess) async throws -> [String] {
        let child = try app(daemon, "collect")
        #expect(try await child.wait() == .exited(0), "\(child.standardError)")
        return child.standardOutput.split(separator: "\n").map(String.init)
    }

    @Test("a second process of a killed app finds its file, the event and the handler's call, once")
    func killedApp() async throws {
        let resource = Resource(size: 1_000_000)
        let server = try ScriptedServer(["/a": [.drip(resource, bytesPerSecond: 1_000_000)]])
        let daemon = try await DaemonProcess.started()
        let first = try app(daemon, "queue", daemon.downloads, server.url("/a"))
        try await eventually(that: "the download is queued") { try !daemon.tasks().isEmpty }
        first.kill(SIGKILL)
        _ = try await first.wait()
        _ = try await daemon.settled(daemon.tasks()[0].id)
        let lines = try await collect(daemon)
        #expect(lines.count == 3)
        #expect(lines.first?.hasPrefix("event ") == true)
        #expect(lines.dropFirst().first?.hasSuffix(" batch-finished - -") == true)
        #expect(lines.first?.hasSuffix(" completed download-0 \(daemon.downloads)/0") == true)
        #expect(lines.last == "handler")
        #expect(resource.difference(fromFileAt: "\(daemon.downloads)/0") == nil)
        #expect(try await collect(daemon) == ["handler"])
    }

    @Test("however often app and daemon are killed, each completed download is delivered, and again only after a kill")
    func killedAppAndDaemon() async throws {
        let count = 40
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", [.serve(Resource(size: 1_000))]) }))
        let daemon = try await DaemonProcess.started()
        var random = SeededGenerator(seed: Torture.seed)
        var kills = 0
        var seen: [String: Int] = [:]
        let urls = (0..<count).map { server.url("/\($0)") }
        // The app queues all of them at each start. The keys keep that from adding any twice.
        func queue() throws -> ChildProcess {
            try ChildProcess(
                [DaemonProcess.program("BackgroundApp"), "queue", daemon.downloads] + urls,
                environment: ["XDG_STATE_HOME": place.path, "DLD_SOCKET": daemon.socket])
        }
        for round in 0..<8 {
            let child = round % 2 == 0 ? try queue() : try app(daemon, "collect")
            try await Task.sleep(for: .milliseconds(Int.random(in: 5...150, using: &random)))
            child.kill(SIGKILL)
            kills += 1
            _ = try await child.wait()
            note(child.standardOutput.split(separator: "\n").map(String.init), in: &seen)
            if round % 3 == 2 {
                try await daemon.kill()
                try await daemon.start()
            }
        }
        let last = try queue()
        #expect(try await last.wait() == .exited(0), "\(last.standardError)")
        note(try await collect(daemon), in: &seen)
        #expect(seen.count == count)
        #expect(seen.values.reduce(0, +) - count <= kills, "an event comes again for a kill at most")
        #expect(try await collect(daemon) == ["handler"])
        #expect(try daemon.tasks().count == count)
    }

    private func note(_ lines: [String], in seen: inout [String: Int]) {
        for line in lines where line.hasPrefix("event ") && line.contains(" completed ") {
            seen[line.split(separator: " ").dropFirst(3).first.map(String.init) ?? "", default: 0] += 1
        }
    }
}
