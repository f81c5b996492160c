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
        let path = place.file("calls")
        try await daemon.start(under: WriteLog.prefix(log: path))
        var wishes: [(wish: Invariants.Wish, toldAt: Int)] = []
        for (name, resource) in [("large", Self.large), ("small", Self.small), ("late", Self.late)] {
            let id = try await daemon.add(server.url("/\(name)"))
            wishes.append((.init(id: id, resource: resource, names: [name]), WriteLog.lines(in: path)))
        }
        // Two parts of the list, unacknowledged before the set is committed.
        let list = place.file("list")
        let urls = (0..<Self.listed).map { server.url("/listed/\($0)\n") }
        try urls.joined().write(toFile: list, atomically: true, encoding: .utf8)
        let listed = try await daemon.dlctl("add", "--input", list, "--paused")
        #expect(listed.output.split(separator: "\n").count == Self.listed, "\(listed.error)")
        let listedAt = WriteLog.lines(in: path)
        for id in wishes.map(\.wish.id) {
            #expect(try await daemon.settled(id, within: .seconds(60)).state == .completed)
        }
        try await daemon.kill()
        try await eventually(that: "strace has written all", within: .seconds(20)) { WriteLog.isComplete(path) }
        let log = try WriteLog(path, beneath: [daemon.stateDirectory, daemon.downloads])

        var generator = SeededGenerator(seed: Torture.seed)
        for _ in 0..<Self.cuts {
            let line = Int.random(in: 0...log.end, using: &generator)
            try log.leave(cutAt: line, using: &generator)
            var invariants = Invariants(daemon, context: "cut at \(line) of \(log.end), seed \(Torture.seed)")
            invariants.wishes = wishes.map(\.wish)
            try await invariants.atRest()
            try await daemon.start()
            // Unacknowledged tasks may exist or not.
            let tasks = try daemon.tasks()
            let known = Set(tasks.map(\.id))
            let count = tasks.count { $0.url.contains("/listed/") }
            #expect(count == Self.listed || (count == 0 && line < listedAt), "\(invariants.context)")
            #expect(try await daemon.dlctl("remove", "--search", "/listed/").succeeded)
            invariants.wishes = wishes.filter { $0.toldAt <= line || known.contains($0.wish.id) }.map(\.wish)
            try await invariants.finish()
            _ = try await daemon.terminate()
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
        let path = place.file("calls")
        try await daemon.start(under: WriteLog.prefix(log: path))
        var wishes: [(wish: Invariants.Wish, toldAt: Int)] = []
        for (index, (name, resource)) in (held + small).enumerated() {
            if index == held.count {
                try await eventually(that: "the first are held up") { server.requests().count == held.count }
            }
            let id = try await daemon.add(server.url("/\(name)"))
            wishes.append((.init(id: id, resource: resource, names: [name]), WriteLog.lines(in: path)))
        }
        for id in wishes.dropFirst(held.count).map(\.wish.id) {
            #expect(try await daemon.settled(id, within: .seconds(60)).state == .completed)
        }
        try await daemon.kill()
        try await eventually(that: "strace has written all", within: .seconds(20)) { WriteLog.isComplete(path) }
        #expect(try text(of: path).contains("O_TMPFILE"))
        let log = try WriteLog(path, beneath: [daemon.stateDirectory, daemon.downloads])
        var generator = SeededGenerator(seed: Torture.seed)
        for _ in 0..<Self.cuts {
            let line = Int.random(in: 0...log.end, using: &generator)
            try log.leave(cutAt: line, using: &generator)
            var invariants = Invariants(daemon, context: "cut at \(line) of \(log.end), seed \(Torture.seed)")
            invariants.wishes = wishes.map(\.wish)
            try await invariants.atRest()
            try await daemon.start()
            let known = Set(try daemon.tasks().map(\.id))
            invariants.wishes = wishes.filter { $0.toldAt <= line || known.contains($0.wish.id) }.map(\.wish)
            try await invariants.finish()
            _ = try await daemon.terminate()
        }
    }
}
