import Curl
import Synchronization

/// A file system that downloads are written to. Its own threads do the blocking work, so that a slow disk does not
/// delay transfers to other ones.
final class Disk: Sendable {
    /// The duration of a single write, in milliseconds, from which a disk counts as slow.
    static let slowWrite: Int64 = 100
    /// The time after such a write during which the disk counts as slow, in milliseconds.
    private static let memory: Int64 = 10_000

    /// Threads for syncs, for writes to a slow disk and for the removal of files.
    let threads: WorkerThreads
    /// Syncs of part files that are still being written.
    let syncs: SharedSync
    private let publisher = Mutex<Publisher?>(nil)
    /// Whether the disk always counts as slow.
    private let mayHang: Bool
    /// The end of the time during which the disk counts as slow, in nanoseconds of the monotonic clock; 0 if it never
    /// did.
    private let slowUntil = Atomic<UInt64>(0)

    /// The number of files with large blocks.
    private let fastFiles = Atomic<Int>(0)
    private static let fastFileLimit = 8

    /// - Parameter mayHang: whether the disk always counts as slow, however fast its previous writes were.
    init(mayHang: Bool = false) {
        self.mayHang = mayHang
        threads = WorkerThreads(name: "dld-disk", limit: 4)
        syncs = SharedSync(on: threads)
    }

    /// Records the duration of a write in milliseconds.
    func record(write milliseconds: Int64, at now: MonotonicTime = .now()) {
        guard milliseconds >= Self.slowWrite else { return }
        slowUntil.store(now.advanced(milliseconds: Self.memory).nanoseconds, ordering: .relaxed)
    }

    /// Whether a write was slow recently. An event loop must not wait for a write to a slow disk, since other transfers
    /// would wait too.
    var isSlow: Bool {
        if mayHang { return true }
        let until = slowUntil.load(ordering: .relaxed)
        return until != 0 && isSlow(at: .now())
    }

    func isSlow(at now: MonotonicTime) -> Bool { now.nanoseconds < slowUntil.load(ordering: .relaxed) }

    /// Counts a file with large blocks, for each of which there is a descriptor more.
    ///
    /// - Returns: `false` if there are too many of them.
    func beginFastFile() -> Bool {
        guard fastFiles.wrappingAdd(1, ordering: .relaxed).newValue > Self.fastFileLimit else { return true }
        endFastFile()
        return false
    }

    func endFastFile() { fastFiles.wrappingSubtract(1, ordering: .relaxed) }

    /// Publishes a file as ``Publisher/publish(_:isUrgent:)`` does. Creates the publisher if necessary.
    func publish(_ item: Publisher.Item, isUrgent: Bool) {
        let found = publisher.withLock { publisher -> Result<Publisher, TransferError> in
            if let publisher { return .success(publisher) }
            do throws(TransferError) {
                let made = try Publisher()
                publisher = made
                return .success(made)
            } catch {
                return .failure(error)
            }
        }
        switch found {
        case .success(let publisher): publisher.publish(item, isUrgent: isUrgent)
        case .failure(let error): item.completion(.failure(error))
        }
    }

    func publishNow() { publisher.withLock { $0 }?.publishNow() }

    func stop() {
        publisher.withLock { $0 }?.stop()
        threads.stop()
    }
}

/// The disks of a session's downloads. They are few, and are kept until the session ends.
final class Disks: Sendable {
    private let disks = Mutex<[UInt64: Disk]>([:])

    /// Returns the disk of `directory`; for `nil`, a disk for downloads that have no directory yet.
    func disk(of directory: Directory?) -> Disk {
        disks.withLock { disks in
            let device = directory?.device ?? 0
            if let disk = disks[device] { return disk }
            let disk = Disk(mayHang: directory?.isOnAnotherMachine ?? false)
            disks[device] = disk
            return disk
        }
    }

    func publishNow() { for disk in all { disk.publishNow() } }

    func stop() { for disk in all { disk.stop() } }

    private var all: [Disk] { disks.withLock { Array($0.values) } }
}
