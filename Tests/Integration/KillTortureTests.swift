import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Torture by SIGKILL", .serialized, .timeLimit(Torture.patience))
struct KillTortureTests {
    @Test("F1: a mixed set of tasks survives kills at random moments, and little is fetched twice")
    func random() async throws {
        var random = SeededGenerator(seed: Torture.seed)
        let killsInSet = min(Torture.kills, 25)
        for round in 1...(Torture.kills / killsInSet) {
            let context = "seed \(Torture.seed), set \(round)"
            let daemon = try await DaemonProcess.started(MixedSet.configuration)
            var set = try await MixedSet(
                daemon, largest: Torture.isLong ? 12 * mebibyte : 7 * mebibyte, context: context, random: &random)
            for kill in 1...killsInSet {
                // Every third pause may be long enough for a checkpoint; the others fall into the start-up of the
                // transfers.
                let pause = Int.random(in: 0...(kill.isMultiple(of: 3) ? 2800 : 500), using: &random)
                try await Task.sleep(for: .milliseconds(pause))
                if [2, 5, 8].contains(kill) { try await set.command() } else { try await set.addOne() }
                try await daemon.kill()
                if kill.isMultiple(of: 4) {
                    // A second kill during recovery.
                    try daemon.launch()
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &random)))
                    try await daemon.kill()
                }
                try await set.invariants.atRest()
                try await daemon.start()
                try set.invariants.alive()
            }
            let refetched = try await set.finish()
            // The bytes that a checkpoint does not cover: two seconds, a check once a second, and nginx's initial
            // burst.
            let window = min(64 * mebibyte, 5 * MixedSet.rate) * MixedSet.activeTasks
            #expect(refetched <= window * Int64(killsInSet), "F1 \(context)")
            Torture.count(kills: killsInSet, refetched: refetched)
            Torture.note("F1: \(round * killsInSet) of \(Torture.kills) kills, \(refetched / mebibyte) MiB again")
        }
    }

    @Test("F2: killed at any call that changes the disk, the daemon finishes what it was told", .needsStrace)
    func everyCall() async throws {
        let template = try await ShortSet.Template()
        try await FaultPoint.visitAll { point in
            let daemon = try DaemonProcess(configuration: ShortSet.configuration)
            var set = try await ShortSet(daemon, template: template, context: "F2 at \(point)") { invariants in
                try await invariants.atRest()
                try await daemon.start()
            }
            try await set.drive(under: point.kill(in: set).prefix())
            // Each chosen point must occur.
            if !Torture.isLong { #expect(set.deaths > 0, "\(point) never came") }
            Torture.count(kills: set.deaths)
            return set.deaths > 0
        }
    }

    @Test("F2: killed as a task moves to another directory, the daemon leaves no part behind", .needsStrace)
    func moved() async throws {
        let resource = Resource(size: 900_000)
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: 600_000, bytesPerSecond: 1000), .serve(resource)]
        ])
        let daemon = try await DaemonProcess.started(ShortSet.configuration)
        func apply(_ directory: String) async throws -> Outcome {
            let entry = "{url: \"\(server.url("/f"))\", directory: \(directory)}"
            let file = try daemon.directory.write("batch: b\ndownloads: [\(entry)]\n", to: "queue.yaml")
            return try await daemon.dlctl("queue", "apply", file)
        }
        #expect(try await apply("one").succeeded)
        try await daemon.state(of: TaskID(1), "to begin") { $0.bytesDone > 0 }
        #expect(try await daemon.dlctl("pause", "1").succeeded)
        #expect(daemon.partFiles.count == 1)
        let death = try await Injection("unlinkat", .kill).attach(to: #require(daemon.pid))
        #expect(try await apply("two").succeeded == false)
        withExtendedLifetime(death) {}
        try await eventually(that: "the daemon is dead") { !daemon.isRunning }
        try await daemon.kill()
        try await daemon.start()
        #expect(try await apply("two").succeeded)
        #expect(try await daemon.dlctl("resume", "1").succeeded)
        #expect(try await daemon.settled(TaskID(1)).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("two/f")) == nil)
        daemon.expectTidy()
    }
}
