import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

@Suite(
    "Power cuts", .serialized, .timeLimit(.minutes(2)),
    .enabled(if: isRoot, "a loop device can be mounted by root alone"),
    .enabled(if: exists("/dev/loop-control"), "there are no loop devices here"))
struct PowerCutTests {
    @Test("an id that add printed exists after a power cut in the same instant, and the store is whole")
    func powerCut() async throws {
        let place = try TemporaryDirectory()
        let mountPoint = try place.makeDirectory("disk")
        let image = place.file("image")
        try await Mount.makeExt4(image: image, bytes: 64 * mebibyte)
        let server = try ScriptedServer(["/hang": [.hang]])
        defer { server.stop() }
        var ids: [TaskID] = []
        for _ in 0..<3 {
            let disk = try await Mount.ext4(image: image, at: mountPoint)
            let daemon = try await DaemonProcess.started(stateDirectory: "\(mountPoint)/state")
            #expect(try daemon.tasks().map(\.id) == ids)
            for _ in 0..<3 { ids.append(try await daemon.add(server.url("/hang"))) }
            try disk.cutPower()
            try await daemon.kill()
            try await disk.unmount()
        }
        let disk = try await Mount.ext4(image: image, at: mountPoint)
        let check = try await run(["sqlite3", "\(mountPoint)/state/dld.db", "PRAGMA integrity_check"])
        #expect(check.output == "ok\n", "\(check.error)")
        let daemon = try await DaemonProcess.started(stateDirectory: "\(mountPoint)/state")
        #expect(try daemon.tasks().map(\.id) == ids)
        try await daemon.kill()
        try await disk.unmount()
    }

    @Test(
        "a file that was told to be complete is whole after a power cut in the same instant, with a journal or without",
        arguments: [true, false])
    func completed(isJournaled: Bool) async throws {
        let place = try TemporaryDirectory()
        let mountPoint = try place.makeDirectory("disk")
        let image = place.file("image")
        try await Mount.makeExt4(image: image, bytes: 128 * mebibyte, isJournaled: isJournaled)
        // The last one is written in blocks that bypass the page cache.
        let sizes = (0..<60).map { 1 + 7_000 * Int64($0) } + [24 * mebibyte + 77]
        let resources = sizes.enumerated().map { Resource(size: $1, seed: UInt64($0)) }
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: resources.enumerated().map { ("/f\($0)", [.serve($1)]) }))
        let disk = try await Mount.ext4(image: image, at: mountPoint)
        let daemon = try DaemonProcess(
            configuration: """
                downloads: {roots: [@DIR@/downloads, \(mountPoint)]}
                disk: {min-free: 0}
                limits: {active-tasks: 32, connections-per-host: 32}

                """,
            stateDirectory: "\(mountPoint)/state")
        try await daemon.start()
        let urls = resources.indices.map { server.url("/f\($0)") }
        let outcome = try await daemon.dlctl(["add", "--wait", "--directory", "\(mountPoint)/files"] + urls)
        try disk.cutPower()
        #expect(outcome.succeeded, "\(outcome.error)")
        try await daemon.kill()
        try await disk.unmount()
        if !isJournaled { try await Mount.repairExt4(image: image) }
        let again = try await Mount.ext4(image: image, at: mountPoint)
        for (index, resource) in resources.enumerated() {
            #expect(resource.difference(fromFileAt: "\(mountPoint)/files/f\(index)") == nil)
        }
        try await daemon.start()
        #expect(try daemon.tasks().allSatisfy { $0.state == .completed })
        try await daemon.kill()
        try await again.unmount()
    }
}
