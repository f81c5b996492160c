import Curl
import Synchronization

/// A file system that downloads go to: its own threads wait for it, so that a slow one holds up nothing that goes
/// elsewhere.
final class Disk: Sendable {
    /// Milliseconds of one write that make a disk slow.
    static let slowWrite: Int64 = 100
    /// Milliseconds after such a write that nobody takes it for a quick one.
    private static let memory: Int64 = 10_000

    /// Sync, write to a slow disk and clear away.
    let threads: WorkerThreads
    /// For parts that go on being written.
    let syncs: SharedSync
    private let publisher = Mutex<Publisher?>(nil)
    /// Slow in any case.
    private let mayHang: Bool
    /// Nanoseconds of the monotonic clock; 0 for one that is not slow.
    private let slowUntil = Atomic<UInt64>(0)

    /// - Parameter mayHang: no write is to be waited for, however quick the ones before it were.
    init(mayHang: Bool = false) {
        self.mayHang = mayHang
        threads = WorkerThreads(name: "dld-disk", limit: 4)
        syncs = SharedSync(on: threads)
    }

    /// A write took so many milliseconds.
    func note(write milliseconds: Int64, at now: MonotonicTime = .now()) {
        guard milliseconds >= Self.slowWrite else { return }
        slowUntil.store(now.advanced(milliseconds: Self.memory).nanoseconds, ordering: .relaxed)
    }

    /// Whether a write of someone's was slow a short while ago: none is to be waited for where others wait too.
    var isSlow: Bool {
        if mayHang { return true }
        let until = slowUntil.load(ordering: .relaxed)
        return until != 0 && isSlow(at: .now())
    }

    func isSlow(at now: MonotonicTime) -> Bool { now.nanoseconds < slowUntil.load(ordering: .relaxed) }

    /// As ``Publisher/publish(_:isUrgent:)``.
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

    func hurry() { publisher.withLock { $0 }?.hurry() }

    func stop() {
        publisher.withLock { $0 }?.stop()
        threads.stop()
    }
}

/// The disks that a session's downloads go to; few, and known until the session ends.
final class Disks: Sendable {
    private let disks = Mutex<[UInt64: Disk]>([:])

    /// The one that `directory` is on; without one, that of what has no place yet.
    func disk(of directory: Directory?) -> Disk {
        disks.withLock { disks in
            let device = directory?.device ?? 0
            if let disk = disks[device] { return disk }
            let disk = Disk(mayHang: directory?.isOnAnotherMachine ?? false)
            disks[device] = disk
            return disk
        }
    }

    func hurry() { for disk in all { disk.hurry() } }

    func stop() { for disk in all { disk.stop() } }

    private var all: [Disk] { disks.withLock { Array($0.values) } }
}
