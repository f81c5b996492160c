import Curl
import Dispatch
import Testing

@testable import Transfer

@Suite("Disks")
struct DiskTests {
    @Test("a slow write is remembered for ten seconds, of its own disk alone; quick ones say nothing")
    func slowness() {
        let disks = Disks()
        defer { disks.stop() }
        let (disk, other) = (disks.disk(1), disks.disk(2))
        let begun = MonotonicTime(nanoseconds: 1_000_000_000)
        #expect(!disk.isSlow)
        disk.note(write: Disk.slowWrite - 1, at: begun)
        #expect(!disk.isSlow(at: begun))
        disk.note(write: Disk.slowWrite, at: begun)
        #expect(disk.isSlow(at: begun.advanced(milliseconds: 9_999)))
        disk.note(write: 1, at: begun.advanced(milliseconds: 5_000))
        #expect(disk.isSlow(at: begun.advanced(milliseconds: 9_999)))
        #expect(!disk.isSlow(at: begun.advanced(milliseconds: 10_000)))
        #expect(!other.isSlow(at: begun))
        #expect(disks.disk(1) === disk)
    }

    @Test("a disk whose threads all wait holds up no other disk's")
    func threads() async {
        let disks = Disks()
        defer { disks.stop() }
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<8 { disks.disk(1).threads.perform { gate.wait() } }
        await withCheckedContinuation { continuation in
            disks.disk(2).threads.perform { continuation.resume() }
        }
        for _ in 0..<8 { gate.signal() }
    }
}
