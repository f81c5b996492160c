import Curl
import Dispatch
import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Disks")
struct DiskTests {
    private static let begun = MonotonicTime(nanoseconds: 1_000_000_000)

    @Test("a slow write is remembered for ten seconds; quick ones say nothing")
    func slowness() {
        let disk = Disk()
        defer { disk.stop() }
        let begun = Self.begun
        #expect(!disk.isSlow)
        disk.record(write: Disk.slowWrite - 1, at: begun)
        #expect(!disk.isSlow(at: begun))
        disk.record(write: Disk.slowWrite, at: begun)
        #expect(disk.isSlow(at: begun.advanced(milliseconds: 9_999)))
        disk.record(write: 1, at: begun.advanced(milliseconds: 5_000))
        #expect(disk.isSlow(at: begun.advanced(milliseconds: 9_999)))
        #expect(!disk.isSlow(at: begun.advanced(milliseconds: 10_000)))
    }

    @Test("one that may hang is slow from the first write on, and stays so")
    func remote() {
        let disk = Disk(mayHang: true)
        defer { disk.stop() }
        #expect(disk.isSlow)
        disk.record(write: Disk.slowWrite, at: Self.begun)
        #expect(disk.isSlow)
    }

    @Test(
        "a file system whose threads all wait holds up no other's", .enabled(if: geteuid() == 0, "only root can mount"))
    func threads() async throws {
        let place = try Place()
        let mounted = try place.temporary.makeDirectory("mounted")
        let mount = try await Mount.tmpfs(at: mounted, bytes: 1 << 20)
        let other = try Directory.open(root: mounted)
        let disks = Disks()
        defer { disks.stop() }
        #expect(disks.disk(of: try Directory.open(root: place.temporary.path)) === disks.disk(of: place.directory))
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<8 { disks.disk(of: other).threads.perform { gate.wait() } }
        await withCheckedContinuation { continuation in
            disks.disk(of: place.directory).threads.perform { continuation.resume() }
        }
        for _ in 0..<8 { gate.signal() }
        withExtendedLifetime(mount) {}
    }
}
