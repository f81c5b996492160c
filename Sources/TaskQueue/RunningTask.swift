import TaskModel
import TaskStore
import Transfer

/// A task that runs, as the scheduler knows it. Never leaves the scheduler.
final class RunningTask {
    let work: TaskWork
    let place: TaskChooser.Place
    /// `nil` where it never came to one: the task could not be begun, or had nothing left to do.
    var request: Request?
    /// The request's: where another is used for new ones, it is there for as long as its own run.
    var manager: SessionManager
    var progress: TransferProgress
    let startedAt: Milliseconds
    /// The source of an upload that is under way.
    var source: SourceIdentity?
    /// The checksum that a list of digests, or a Metalink, gave for the file in this run.
    var foundChecksum: String?
    /// Why it is to end, once someone said so; the first order stands, unless a later one is stronger.
    var order: RunConclusion.Order?
    /// Resumed when the run's conclusion is written.
    var waiters: [CheckedContinuation<Void, Never>] = []
    var meter = RateMeter()
    /// No byte came or went for a while: it lends its slot.
    var isSilent = false
    /// When the counts last moved, of a clock that no one sets.
    var lastMoved: Milliseconds
    var lastTransferred: Int64 = 0
    /// A checkpoint that is under way: the conclusion is written after it.
    var checkpoint: Task<Void, Never>?
    var lastCheckpoint: Milliseconds
    /// The store did not take the last checkpoint.
    var owesCheckpoint = false
    /// The store does not take what it came to, and is asked again and again.
    var cannotBeWritten = false
    /// Whether it counts among those that use the network.
    var holdsSlot = true
    /// Whether it was refused a beginning: its owner's downloads take up too much.
    var neverBegan = false
    /// Bytes that are written down of it at its end.
    var keptBytes: Int64 = 0
    /// The network's part is over; the conclusion is being written.
    var isConcluding = false

    init(
        work: TaskWork, place: TaskChooser.Place, request: Request?, manager: SessionManager,
        progress: TransferProgress, startedAt: Milliseconds,
        monotonic: Milliseconds
    ) {
        self.work = work
        self.place = place
        self.request = request
        self.manager = manager
        self.progress = progress
        self.startedAt = startedAt
        lastMoved = monotonic
        lastCheckpoint = monotonic
    }

    var record: TaskRecord { work.record }

    /// Notes what has come and gone.
    ///
    /// - Returns: whether these are the first bytes.
    func look(at now: Milliseconds) -> Bool {
        let transferred = progress.transferredBytes
        meter.note(transferred, at: now)
        guard transferred != lastTransferred else { return false }
        let isFirst = lastTransferred == 0
        lastTransferred = transferred
        lastMoved = now
        return isFirst
    }

    /// Bytes received or sent, over all runs.
    var bytesFetched: Int64 { record.bytesFetched + progress.transferredBytes }

    /// The status that is stored of it, with what is known at this moment laid over it.
    func status(over stored: TaskRecord, at monotonic: Milliseconds) -> TaskStatus {
        var status = TaskStatus(stored)
        status.state = .active
        status.reason = nil
        status.notBefore = nil
        status.phase =
            switch progress.phase {
            case .connecting: .connecting
            case .transferring: .transferring
            case .verifying: .verifying
            case .publishing: .publishing
            }
        status.bytesDone = progress.completedBytes
        status.bytesTotal = progress.totalBytes
        status.bytesFetched = bytesFetched
        status.rate = meter.rate(progress.transferredBytes, at: monotonic) ?? 0
        if let rate = status.rate, rate > 0, let total = progress.totalBytes {
            let left = max(0, total.subtractingClamped(progress.completedBytes))
            status.eta = left / rate + (left % rate == 0 ? 0 : 1)
        }
        status.connections = holdsSlot ? max(1, progress.connections) : 0
        status.attempts = record.attempts + (request?.retryCount ?? 0) + 1
        status.startedAt = stored.startedAt ?? startedAt
        status.error = nil
        status.checksum = stored.specification.checksum ?? foundChecksum ?? stored.foundChecksum
        return status
    }
}
