import Glibc
import TaskModel
import TestSupport
import Testing

/// A set of tasks of every kind: small and large, conflicting names, right and wrong checksums, and some that are
/// cancelled, removed and paused while they run.
struct MixedSet {
    private let nginx: Nginx
    let daemon: DaemonProcess
    var invariants: Invariants
    private var next = 0
    /// The commands that remain to be run.
    private var commands: [(word: String, id: TaskID, fate: Invariants.Wish.Fate)] = []
    private var paused: [TaskID] = []

    /// A configuration with the number of concurrent tasks of ``activeTasks``; ``rate`` is the throughput of a
    /// connection in bytes per second.
    static let configuration = """
        retry: {attempts: 10, base-delay: 50ms, max-delay: 200ms}
        limits: {active-tasks: 5}
        disk: {min-free: 0}

        """
    static let rate = 3 * mebibyte
    static let activeTasks: Int64 = 5
    private static let long = Resource(size: 40 * mebibyte, seed: 90)

    /// - Parameter largest: the size in bytes of the largest file.
    init(_ daemon: DaemonProcess, largest: Int64, context: String, random: inout SeededGenerator) async throws {
        self.daemon = daemon
        nginx = try await Nginx([.limited("/", bytesPerSecond: Int(Self.rate))])
        invariants = Invariants(daemon, context: context)
        // Long files, so that they are still being transferred when their command is run.
        for (word, fate) in [("cancel", Invariants.Wish.Fate.cancelled), ("remove", .removed), ("pause", .paused)] {
            let id = try await add(Self.long, as: word)
            commands.append((word, id, fate))
        }
        for size in [0, 1, 4096, 65_537, Int64.random(in: 1...mebibyte, using: &random)] {
            try await add(Resource(size: size, seed: random.next()), as: "small-\(size)")
        }
        for _ in 0..<4 {
            let size = Int64.random(in: largest / 2...largest, using: &random)
            try await add(Resource(size: size, seed: random.next()), as: "large-\(size)")
        }
        try await addNames()
        try await addSums()
    }

    private mutating func addNames() async throws {
        let (old, new) = (Resource(size: 70_000, seed: 1), Resource(size: mebibyte, seed: 2))
        try old.write(to: daemon.path("over"))
        invariants.replaced["over"] = old
        try await add(new, as: "over", "--on-conflict", "overwrite")
        try old.write(to: daemon.path("taken.bin"))
        invariants.bystanders["taken.bin"] = old
        try await add(new, as: "taken.bin", names: ["taken (1).bin"])
        for _ in 0..<2 {
            try await add(new, as: "twin.bin", names: ["twin.bin", "twin (1).bin"])
        }
    }

    private mutating func addSums() async throws {
        let resource = Resource(size: 2 * mebibyte, seed: 3)
        try nginx.publish(resource, as: "summed")
        let sum = try await run(["sha256sum", "\(nginx.root)/summed"]).output.prefix(64)
        try await add(resource, as: "summed", "--checksum", "sha-256:\(sum)")
        let wrong = String(repeating: "0", count: 64)
        let id = try await add(Resource(size: 100_000, seed: 4), as: "wrong", "--checksum", "sha-256:\(wrong)")
        invariants.setFate(.fails(.checksumMismatch), of: id)
    }

    @discardableResult
    private mutating func add(
        _ resource: Resource, as name: String, names: Set<String>? = nil, _ options: String...
    ) async throws -> TaskID {
        next += 1
        try nginx.publish(resource, as: "f\(next)")
        let outcome = try await daemon.dlctl(["add", "-o", name] + options + [nginx.url("/f\(next)")])
        let id = TaskID(try #require(outcome.lines.first.flatMap { Int64($0) }, "\(outcome)"))
        invariants.wishes.append(.init(id: id, resource: resource, names: names ?? [name]))
        return id
    }

    /// Adds one more small file, as the last acknowledged request before the daemon is killed.
    mutating func addOne() async throws {
        try await add(Resource(size: Int64(next) * 1000, seed: UInt64(next)), as: "late-\(next)")
    }

    /// Runs one of the remaining commands.
    mutating func command() async throws {
        guard let command = commands.popLast() else { return }
        let outcome = try await daemon.dlctl(command.word, command.id.description)
        guard outcome.succeeded else {
            // On a busy machine the task may have completed before its command.
            #expect(try daemon.task(command.id).state == .completed, "\(outcome)")
            return
        }
        invariants.setFate(command.fate, of: command.id)
        if command.fate == .removed, exists(daemon.path(command.word)) {
            invariants.bystanders[command.word] = Self.long
        }
        if command.fate == .paused { paused.append(command.id) }
    }

    /// Runs the remaining commands, resumes all paused tasks and waits until every task ends.
    mutating func finish() async throws -> Int64 {
        while !commands.isEmpty { try await command() }
        for id in paused {
            #expect(try await daemon.dlctl("resume", id.description).succeeded)
            invariants.setFate(.completes, of: id)
        }
        return try await invariants.finish()
    }
}

extension Invariants {
    mutating func setFate(_ fate: Wish.Fate, of id: TaskID) {
        for index in wishes.indices where wishes[index].id == id { wishes[index].fate = fate }
    }
}
