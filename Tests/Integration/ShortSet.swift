import Glibc
import TaskModel
import TestSupport
import Testing

/// A few tasks that cover every disk operation of the daemon: written, checkpointed, resumed, removed, renamed,
/// replacing another file. They are driven to their end over any number of daemon deaths.
struct ShortSet {
    /// The store's identity in the names of part files.
    let identity: String
    let daemon: DaemonProcess
    private let server: ScriptedServer
    private let queueFile: String
    private(set) var invariants: Invariants
    private(set) var deaths = 0
    /// A closure that restarts the daemon, after simulating any disk fault.
    private let revive: (Invariants) async throws -> Void

    private static let gone = "gone"
    private static let slow = Resource(size: 700_000, seed: 5)
    private static let files: [(name: String, resource: Resource, final: String, conflict: String)] = [
        (gone, Resource(size: 900_000, seed: 9), gone, "rename"),
        ("slow", slow, "slow", "rename"),
        ("small", Resource(size: 5_000, seed: 6), "small", "rename"),
        ("over", Resource(size: 300_000, seed: 7), "over", "overwrite"),
        ("taken.bin", Resource(size: 70_000, seed: 8), "taken (1).bin", "rename"),
    ]

    static let configuration = "retry: {attempts: 10, base-delay: 50ms, max-delay: 200ms}\ndisk: {min-free: 0}\n"

    /// - Parameters:
    ///   - template: an empty state directory created by ``template()``.
    ///   - revive: called each time that the daemon is found dead; restarts it.
    init(
        _ daemon: DaemonProcess, template: Template, context: String,
        revive: @escaping (Invariants) async throws -> Void
    ) async throws {
        self.daemon = daemon
        self.revive = revive
        identity = template.identity
        invariants = Invariants(daemon, context: context)
        // The removed task never ends; the paused one is slow once.
        let server = try ScriptedServer(
            Dictionary(
                uniqueKeysWithValues: Self.files.map { [gone = Self.gone] file in
                    let answers: [ScriptedAnswer] =
                        switch file.name {
                        case gone: [.drip(file.resource, after: 300_000, bytesPerSecond: 1_000)]
                        case "slow":
                            [.drip(file.resource, after: 300_000, bytesPerSecond: 500_000), .serve(file.resource)]
                        default: [.serve(file.resource)]
                        }
                    return ("/\(file.name)", answers)
                }))
        self.server = server
        let old = Resource(size: 60_000, seed: 1)
        try old.write(to: daemon.path("over"))
        try old.write(to: daemon.path("taken.bin"))
        invariants.replaced["over"] = old
        invariants.bystanders["taken.bin"] = old
        let entries = Self.files.map { file in
            "  - {url: \"\(server.url("/\(file.name)"))\", output: \(file.name), on-conflict: \(file.conflict)}\n"
        }
        queueFile = try daemon.directory.write(
            "batch: short\ndownloads:\n" + entries.joined(), to: "queue.yaml")
        try await template.copy(to: daemon.stateDirectory)
    }

    /// An empty state directory whose identity, and therefore the names of part files, is known beforehand.
    final class Template: Sendable {
        let identity: String
        private let directory: TemporaryDirectory

        init() async throws {
            directory = try TemporaryDirectory()
            let daemon = try DaemonProcess(stateDirectory: directory.makeDirectory("state"))
            try await daemon.start()
            _ = try await daemon.terminate()
            let sql = "SELECT value FROM meta WHERE name = 'identity'"
            let outcome = try await run(["sqlite3", directory.file("state/dld.db"), sql])
            identity = try #require(outcome.lines.first, "\(outcome)")
        }

        func copy(to target: String) async throws {
            let outcome = try await run(["cp", "-a", "\(directory.path)/state/.", target])
            try #require(outcome.succeeded, "\(outcome)")
        }
    }

    /// The paths of the part files that its tasks may have.
    var parts: [String] {
        Self.files.indices.flatMap { index -> [String] in
            let name = ".dld-\(identity)-\(index + 1).part"
            return [name, daemon.path(name)]
        }
    }

    // MARK: Driving the set

    /// Drives the set from the beginning to the daemon's own end.
    ///
    /// - Parameter prefix: the command that the daemon first runs under.
    mutating func drive(under prefix: [String]) async throws {
        let child = try daemon.launch(under: prefix)
        try await eventually(that: "the daemon answers or is dead", within: .seconds(30), every: .milliseconds(5)) {
            child.poll() != nil || daemon.answers
        }
        let file = queueFile
        try await until("applying the file") { try await $0.daemon.dlctl("queue", "apply", file).succeeded }
        try await until("the tasks") { try $0.learn() }
        let (gone, slow) = (TaskID(1), TaskID(2))
        try await until("pausing") { try await $0.isDone($0.daemon.dlctl("pause", slow.description), slow) }
        invariants.setFate(.leaving, of: gone)
        try await until("removing") { try await $0.isDone($0.daemon.dlctl("remove", gone.description), gone) }
        invariants.setFate(.removed, of: gone)
        try await until("resuming") { try await $0.isDone($0.daemon.dlctl("resume", slow.description), slow) }
        try await until("the end of all") { set in
            try set.invariants.alive()
            return try set.daemon.tasks().allSatisfy(\.isSettled)
        }
        // A daemon that ends writes the log into the database, and can be killed during that as well.
        if try await daemon.terminate() == .killed(signal: SIGKILL) {
            deaths += 1
            try await revive(invariants)
        } else {
            try await daemon.start()
        }
        try await invariants.finish()
        _ = try await daemon.terminate()
    }

    /// Repeats `step` until it succeeds; a daemon that has died is restarted.
    private mutating func until(_ what: String, _ step: (inout ShortSet) async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            // A dying daemon interrupts a call.
            let isDone = (try? await step(&self)) ?? false
            if isDone { return }
            if daemon.isRunning {
                try await Task.sleep(for: .milliseconds(20))
            } else {
                deaths += 1
                try #require(deaths < 20, "\(invariants.context): the daemon does not stay alive: \(daemon.log)")
                try await revive(invariants)
                try invariants.alive()
            }
        }
        let tasks = (try? daemon.tasks()).map { "\($0.map { "\($0.id) \($0.state) \($0.bytesDone)" })" } ?? "no answer"
        throw Unusable(
            reason: "\(invariants.context): \(what) takes too long; tasks: \(tasks); \(daemon.log.suffix(4000))")
    }

    /// - Returns: whether the tasks exist.
    private mutating func learn() throws -> Bool {
        let tasks = try daemon.tasks()
        guard !tasks.isEmpty else { return false }
        #expect(tasks.count == Self.files.count, "I7 \(invariants.context): \(tasks.count) tasks")
        invariants.wishes = zip(1..., Self.files).map { number, file in
            .init(id: TaskID(Int64(number)), resource: file.resource, names: [file.final])
        }
        return true
    }

    /// Returns whether a command has taken effect, possibly by an earlier attempt whose response was lost.
    private func isDone(_ outcome: Outcome, _ id: TaskID) throws -> Bool {
        if outcome.succeeded { return true }
        guard outcome.status == .exited(1), daemon.isRunning else { return false }
        return try daemon.tasks().first { $0.id == id }?.isSettled ?? true
    }
}
