import FoundationEssentials
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
            // What lay there before is on disk.
            sync()
            for cut in 1...cutsInSet {
                let pause = Int.random(in: 0...(cut.isMultiple(of: 3) ? 2800 : 500), using: &random)
                try await Task.sleep(for: .milliseconds(pause))
                // F4: what is told to be complete now is so after the cut. F6: what was added now is there.
                if [2, 5, 8].contains(cut) { try await set.command() } else { try await set.addOne() }
                try set.invariants.alive()
                try disks.cut()
                try await daemon.kill()
                try await disks.remount()
                try await set.invariants.atRest()
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

    @Test("F6: a task that was told to be removed leaves no part after a power cut in the same instant")
    func removed() async throws {
        let disks = try await Disks()
        let daemon = try disks.daemon("a", configuration: MixedSet.configuration)
        let server = try ScriptedServer(["/f": [.drip(Resource(size: mebibyte), after: 600_000, bytesPerSecond: 1000)]])
        try await daemon.start()
        let id = try await daemon.add(server.url("/f"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 0 }
        // The part itself is on disk, as one is that has been checkpointed.
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
        try await FaultPoint.forEach { point in
            number += 1
            let daemon = try disks.daemon("case-\(number)", configuration: ShortSet.configuration)
            var set = try await ShortSet(daemon, template: template, context: "F3 at \(point)") { invariants in
                // The process died at the call; what it had written has had no time to reach the disk.
                try disks.cut()
                try await disks.remount()
                try await invariants.atRest()
                try await daemon.start()
            }
            // The set itself is there before its power fails.
            sync()
            try await set.drive(under: point.kill(in: set).prefix())
            if !Torture.isLong { #expect(set.deaths > 0, "\(point) never came") }
            Torture.count(cuts: set.deaths)
            _ = try await daemon.terminate()
            for path in [daemon.stateDirectory, daemon.downloads] {
                try FileManager.default.removeItem(atPath: path)
            }
            return set.deaths > 0
        }
        try await disks.unmount()
    }
}
