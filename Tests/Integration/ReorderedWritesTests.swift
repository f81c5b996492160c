import FoundationEssentials
import TaskModel
import TestSupport
import Testing

@Suite("Writes that reach the disk in another order", .needsStrace, .timeLimit(Torture.patience))
struct ReorderedWritesTests {
    /// The large file. In long torture it is fetched over several connections.
    private static let large = Resource(size: (Torture.isLong ? 5 : 1) * mebibyte + 77, seed: 3)
    private static let rate = Torture.isLong ? 700_000 : 250_000
    private static let small = Resource(size: 3_000, seed: 4)
    private static let late = Resource(size: 200_000, seed: 5)

    /// The number of listed tasks, more than one call carries.
    private static let listed = 1_001

    /// The number of disk images that are made of the writes of one run.
    private static let cuts = Torture.isLong ? 400 : 8

    @Test("F8: whichever sectors a power cut leaves of what was not synced, the store is whole and claims nothing else")
    func reordered() async throws {
        let server = try ScriptedServer([
            "/large": [.drip(Self.large, after: Self.large.size / 3, bytesPerSecond: Self.rate)],
            "/small": [.serve(Self.small)], "/late": [.serve(Self.late)],
        ])
        let daemon = try DaemonProcess(configuration: ShortSet.configuration)
        let place = try TemporaryDirectory()
        var recording = Recording(daemon, calls: place.file("calls"))
        try await recording.start()
        for (name, resource) in [("large", Self.large), ("small", Self.small), ("late", Self.late)] {
            try await recording.add(name, resource, from: server)
        }
        // Two parts of the list, unacknowledged before the set is committed.
        let list = place.file("list")
        let urls = (0..<Self.listed).map { server.url("/listed/\($0)\n") }
        try urls.joined().write(toFile: list, atomically: true, encoding: .utf8)
        let listed = try await daemon.dlctl("add", "--input", list, "--paused")
        #expect(listed.output.split(separator: "\n").count == Self.listed, "\(listed.error)")
        let listedAt = WriteLog.lines(in: recording.calls)
        let log = try await recording.end(completed: recording.wishes.map(\.wish.id))
        try await recording.cutPower(log, times: Self.cuts) { line, tasks, context in
            let isRemoved = try await daemon.dlctl("remove", "--search", "/listed/").succeeded
            #expect(isRemoved)
            // Unacknowledged tasks may exist or not.
            let count = tasks.count { $0.url.contains("/listed/") }
            #expect(count == Self.listed || (count == 0 && line < listedAt), "\(context)")
        }
        Torture.note("\(Self.cuts) disks of \(log.end) calls")
    }

    @Test("F8: a small file that gets its name last is whole or absent, whatever a power cut leaves")
    func namedLast() async throws {
        // Transfers that are held up, so that the others are many. They end after the power cut.
        let held = (0..<8).map { ("held-\($0)", Resource(size: 2_000, seed: 100 + UInt64($0))) }
        let small = (0..<16).map { ("small-\($0)", Resource(size: 400 + 900 * Int64($0), seed: UInt64($0))) }
        let server = try ScriptedServer(
            Dictionary(
                uniqueKeysWithValues: held.map { ("/\($0)", [.hang, .serve($1)]) }
                    + small.map { ("/\($0)", [.serve($1)]) }))
        let daemon = try DaemonProcess(
            configuration: ShortSet.configuration + "limits: {active-tasks: 32, connections-per-host: 32}\n")
        let place = try TemporaryDirectory()
        var recording = Recording(daemon, calls: place.file("calls"))
        try await recording.start()
        for (index, (name, resource)) in (held + small).enumerated() {
            if index == held.count {
                try await eventually(that: "the first are held up") { server.requests().count == held.count }
            }
            try await recording.add(name, resource, from: server)
        }
        let log = try await recording.end(completed: recording.wishes.dropFirst(held.count).map(\.wish.id))
        #expect(try text(of: recording.calls).contains("O_TMPFILE"))
        try await recording.cutPower(log, times: Self.cuts)
    }
}

/// A run of a daemon whose disk operations are recorded, and what its tasks must become after a power cut.
private struct Recording {
    let daemon: DaemonProcess
    /// The file of the recorded calls.
    let calls: String
    /// The tasks, each with the number of recorded lines when its creation was acknowledged.
    private(set) var wishes: [(wish: Invariants.Wish, toldAt: Int)] = []

    init(_ daemon: DaemonProcess, calls: String) {
        self.daemon = daemon
        self.calls = calls
    }

    func start() async throws { try await daemon.start(under: WriteLog.prefix(log: calls)) }

    mutating func add(_ name: String, _ resource: Resource, from server: ScriptedServer) async throws {
        let id = try await daemon.add(server.url("/\(name)"))
        wishes.append((.init(id: id, resource: resource, names: [name]), WriteLog.lines(in: calls)))
    }

    /// Kills the daemon once these tasks are completed, and returns the log of the run.
    func end(completed ids: [TaskID]) async throws -> WriteLog {
        for id in ids { #expect(try await daemon.settled(id, within: .seconds(60)).state == .completed) }
        try await daemon.kill()
        try await eventually(that: "strace has written all", within: .seconds(20)) { WriteLog.isComplete(calls) }
        return try WriteLog(calls, beneath: [daemon.stateDirectory, daemon.downloads])
    }

    /// Makes disks that a power cut could have left, and lets the daemon finish on each.
    ///
    /// - Parameter examine: called after each start with the line of the cut, the tasks, and a text for failures.
    func cutPower(
        _ log: WriteLog, times: Int, examine: (Int, [TaskStatus], String) async throws -> Void = { _, _, _ in }
    ) async throws {
        var generator = SeededGenerator(seed: Torture.seed)
        for _ in 0..<times {
            let line = Int.random(in: 0...log.end, using: &generator)
            try log.leave(cutAt: line, using: &generator)
            var invariants = Invariants(daemon, context: "cut at \(line) of \(log.end), seed \(Torture.seed)")
            invariants.wishes = wishes.map(\.wish)
            try await invariants.atRest()
            try await daemon.start()
            let tasks = try daemon.tasks()
            let known = Set(tasks.map(\.id))
            try await examine(line, tasks, invariants.context)
            invariants.wishes = wishes.filter { $0.toldAt <= line || known.contains($0.wish.id) }.map(\.wish)
            try await invariants.finish()
            _ = try await daemon.terminate()
        }
    }
}
