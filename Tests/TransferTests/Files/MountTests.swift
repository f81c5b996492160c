import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Mounts", .serialized, .enabled(if: geteuid() == 0, "only root can mount"))
struct MountTests {
    @Test("a mount that is gone is not taken for another one that has its numbers by now")
    func reusedNumbers() async throws {
        let place = try TemporaryDirectory()
        let first = try place.makeDirectory("first")
        let second = try place.makeDirectory("second")
        // Another process that mounts something may get the numbers, so the test repeats a few times.
        for _ in 0..<20 {
            let disk = try await TestSupport.Mount.tmpfs(at: first, bytes: 1 << 20)
            let mount = try #require(try Directory.open(root: first).mount)
            #expect(mount.isAttached)
            let before = try numbers(of: first)
            try disk.detach()
            #expect(!mount.isAttached)
            let other = try await TestSupport.Mount.tmpfs(at: second, bytes: 1 << 20)
            #expect(!mount.isAttached)
            let after = try numbers(of: second)
            try await other.unmount()
            if before == after { return }
        }
        Issue.record("the kernel gave none of twenty mounts the numbers of the one before")
    }

    /// Returns the id of the mount at `path`, and the device numbers of its file system.
    private func numbers(of path: String) throws -> [Substring] {
        let mounts = try String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
        let line = try #require(mounts.split(separator: "\n").first { $0.contains(" \(path) ") })
        let words = line.split(separator: " ")
        return [words[0], words[2]]
    }
}
