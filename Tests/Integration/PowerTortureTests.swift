import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Torture by power cuts", .serialized, .timeLimit(Torture.patience), .needsLoopDevices)
struct PowerTortureTests {
    @Test("F3, F4, F6: a mixed set of tasks survives power cuts at random moments")
    func random() async throws {
        var random = SeededGenerator(seed: Torture.seed)
        let cutsInSet = min(Torture.cuts, 20)
        for round in 1...(Torture.cuts / cutsInSet) {
            let context = "seed \(Torture.seed), set \(round)"
            let disks = try await Disks()
            let daemon = try disks.daemon("a", configuration: MixedSet.configuration)
            try await daemon.start()
            var set = try await MixedSet(
                daemon, largest: Torture.isLong ? 12 * mebibyte : 7 * mebibyte, context: context, random: &random)
            // The initial files are on disk.
            sync()
            for cut in 1...cutsInSet {
                let pause = Int.random(in: 0...(cut.isMultiple(of: 3) ? 2800 : 500), using: &random)
                try await Task.sleep(for: .milliseconds(pause))
                // F4: a task reported as complete now is complete after the cut. F6: a task added now exists after it.
                if [2, 5, 8].contains(cut) { try await set.command() } else { try await set.addOne() }
                try set.invariants.alive()
                try disks.cut()
                try await daemon.kill()
                try await disks.remount()
                try await set.invariants.atRest()
                if cut.isMultiple(of: 4) {
                    // A second power cut during recovery.
                    try daemon.launch()
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &random)))
                    try disks.cut()
                    try await daemon.kill()
                    try await disks.remount()
                    try await set.invariants.atRest()
                }
                try await daemon.start()
                try set.invariants.alive()
            }
            let refetched = try await set.finish()
            try await daemon.kill()
            try await disks.unmount()
            Torture.count(cuts: cutsInSet, refetched: refetched)
            Torture.note("F3: \(round * cutsInSet) of \(Torture.cuts) power cuts")
        }
    }

    @Test(
        "F4: a file that was told to be complete is whole under its name, whenever the power fails after that",
        arguments: Torture.isLong ? [0, 50, 200, 800, 2_000, 4_000, 6_000, 10_000] : [0, 300])
    func completed(milliseconds: Int) async throws {
        let disks = try await Disks()
        let daemon = try disks.daemon("a", configuration: MixedSet.configuration)
        let resources = (0..<12).map { Resource(size: 1 + 70_000 * Int64($0), seed: UInt64($0)) }
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: resources.enumerated().map { ("/f\($0)", [.serve($1)]) }))
        try await daemon.start()
        let outcome = try await daemon.dlctl(["add", "--wait"] + resources.indices.map { server.url("/f\($0)") })
        #expect(outcome.succeeded, "\(outcome.error)")
        try await Task.sleep(for: .milliseconds(milliseconds))
        try disks.cut()
        try await daemon.kill()
        try await disks.remount()
        for (index, resource) in resources.enumerated() {
            #expect(resource.difference(fromFileAt: daemon.path("f\(index)")) == nil)
        }
        try await daemon.start()
        #expect(try daemon.tasks().allSatisfy { $0.state == .completed })
        #expect(server.requests().count == resources.count)
        daemon.expectTidy()
        try await daemon.kill()
        try await disks.unmount()
        Torture.count(cuts: 1)
    }

    @Test("F6: a task that was told to be removed leaves no part after a power cut in the same instant")
    func removed() async throws {
        let disks = try await Disks()
        let daemon = try disks.daemon("a", configuration: MixedSet.configuration)
        let server = try ScriptedServer(["/f": [.drip(Resource(size: mebibyte), after: 600_000, bytesPerSecond: 1000)]])
        try await daemon.start()
        let id = try await daemon.add(server.url("/f"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 0 }
        // The part file itself is on disk, like one that has been checkpointed.
        sync()
        #expect(try await daemon.dlctl("remove", id.description).succeeded)
        try disks.cut()
        try await daemon.kill()
        try await disks.remount()
        #expect(daemon.partFiles == [])
        try await daemon.start()
        #expect(try daemon.tasks().isEmpty)
        try await daemon.kill()
        try await disks.unmount()
    }

    @Test("F3, F5: power that fails at any step of the order of writes costs no task and no file", .needsStrace)
    func everyStep() async throws {
        let template = try await ShortSet.Template()
        let disks = try await Disks()
        var number = 0
        try await FaultPoint.visitAll { point in
            number += 1
            let daemon = try disks.daemon("case-\(number)", configuration: ShortSet.configuration)
            var set = try await ShortSet(daemon, template: template, context: "F3 at \(point)") { invariants in
                // The process died at the call; its writes have had no time to reach the disk.
                try disks.cut()
                try await disks.remount()
                try await invariants.atRest()
                try await daemon.start()
            }
            // The set itself is on disk before its power fails.
            sync()
            try await set.drive(under: point.kill(in: set).prefix())
            if !Torture.isLong { #expect(set.deaths > 0, "\(point) never came") }
            Torture.count(cuts: set.deaths)
            try disks.removeDirectories(of: daemon)
            return set.deaths > 0
        }
        try await disks.unmount()
    }

    /// Returns a daemon on its own disks with a transfer in progress, slow enough for a fault to be injected between
    /// its steps.
    private func underWay(_ disks: Disks, _ server: ScriptedServer) async throws -> (DaemonProcess, TaskID) {
        let daemon = try disks.daemon("a", configuration: ShortSet.configuration)
        try await daemon.start()
        let id = try await daemon.add(server.url("/f"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 0 }
        return (daemon, id)
    }

    private static let file = Resource(size: 900_000, seed: 3)
    private static let script = ["/f": [ScriptedAnswer.drip(file, after: 400_000, bytesPerSecond: 400_000)]]

    @Test(
        "F5: power that fails between two of the last steps costs no second request", .needsStrace,
        arguments: ["fsync", "fdatasync"])
    func published(call: String) async throws {
        let disks = try await Disks()
        let server = try ScriptedServer(Self.script)
        let (daemon, id) = try await underWay(disks, server)
        let pid = try #require(daemon.pid)
        // The commit follows the sync of the directory; the event is sent after the commit.
        let place = call == "fsync" ? daemon.downloads : "\(daemon.stateDirectory)/dld.db-wal"
        let stop = try await Injection(call, .stop, occurrence: "1", at: [place]).attach(to: pid)
        try await eventually(that: "the step is reached", within: .seconds(30)) { stop.hasStopped }
        try disks.cut()
        try await daemon.kill()
        try await disks.remount()
        try await daemon.start()
        let task = try await daemon.settled(id)
        #expect(task.state == .completed)
        #expect(server.requests().count == 1)
        #expect(Self.file.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(daemon.partFiles == [])
        // A subscriber receives the event again, or for the first time.
        let connection = try StreamSocket(path: daemon.socket)
        connection.setReadTimeout(20)
        connection.send(#"{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"after":0}}"#.utf8 + [0x0A])
        var said = ""
        while !said.contains(#""type":"completed""#), let line = try connection.readLine() { said += line }
        #expect(said.contains(#""type":"completed""#))
        try await daemon.kill()
        try await disks.unmount()
    }

    @Test("F5: a file that was found published counts as complete once its name is on disk", .needsStrace)
    func foundPublished() async throws {
        let disks = try await Disks()
        let server = try ScriptedServer(Self.script)
        let (daemon, id) = try await underWay(disks, server)
        let pid = try #require(daemon.pid)
        let death = try await Injection("fsync", .kill, at: [daemon.downloads]).attach(to: pid)
        try await eventually(that: "it died before the directory's sync", within: .seconds(30)) { !daemon.isRunning }
        withExtendedLifetime(death) {}
        #expect(exists(daemon.path("f")))
        try await daemon.start()
        #expect(try await daemon.settled(id).state == .completed)
        try disks.cut()
        try await daemon.kill()
        try await disks.remount()
        #expect(Self.file.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(server.requests().count == 1)
        try await disks.unmount()
    }

    /// The known points at which the creation of a database can be interrupted; long torture tries all of them.
    private static let creation: [(call: String, file: String, occurrences: [Int])] = [
        ("pwrite64", "dld.db", [1]), ("fdatasync", "dld.db", [1]), ("pwrite64", "dld.db-wal", [1, 20]),
        ("fdatasync", "dld.db-wal", [1, 2]), ("fdatasync", "dld.db-journal", []), ("pwrite64", "dld.db-journal", []),
        ("openat", "dld.db", [2]), ("unlink", "dld.db-journal", []), ("fchmod", "dld.db", []),
        ("ftruncate", "dld.db-shm", []), ("fsync", "", []),
    ]

    @Test("F7: power that fails at any step of a new database's making leaves none or one", .needsStrace)
    func creation() async throws {
        let disks = try await Disks()
        var number = 0
        for step in Self.creation {
            for occurrence in Torture.isLong ? Array(1...300) : step.occurrences {
                number += 1
                let daemon = try disks.daemon("case-\(number)", configuration: "")
                let place = "\(daemon.stateDirectory)\(step.file.isEmpty ? "" : "/")\(step.file)"
                let death = Injection(step.call, .kill, occurrence: "\(occurrence)", at: [place])
                let child = try daemon.launch(under: death.prefix())
                try await eventually(that: "it answers or is dead", within: .seconds(30), every: .milliseconds(5)) {
                    child.poll() != nil || daemon.answers
                }
                let isReached = child.poll() == .killed(signal: SIGKILL)
                if !Torture.isLong { #expect(isReached, "\(step.call) \(occurrence) at \(step.file) never came") }
                try disks.cut()
                try await daemon.kill()
                try await disks.remount()
                let context = "F7 at \(step.call) \(occurrence) of \(step.file)"
                try await Invariants(daemon, context: context).atRest()
                try await daemon.start()
                let id = try await daemon.add("--paused", "http://127.0.0.1:1/f")
                try await daemon.kill()
                try await daemon.start()
                #expect(try daemon.tasks().map(\.id) == [id], "\(context)")
                try await daemon.kill()
                try await Invariants(daemon, context: context).atRest()
                try disks.removeDirectories(of: daemon)
                Torture.count(cuts: 1)
                if !isReached { break }
            }
            Torture.note("F7: \(step.call) at \(step.file)")
        }
        try await disks.unmount()
    }
}
