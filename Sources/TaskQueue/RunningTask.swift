import TaskModel
import TaskStore
import Transfer

/// The scheduler's state of a running task. It never leaves the scheduler.
final class RunningTask {
    let work: TaskWork
    let place: TaskChooser.Place
    /// The current request; `nil` where the task could not be started or had nothing to do.
    var request: Request?
    /// The session manager of the request. It stays in use for this run even where a new one serves new requests.
    var manager: SessionManager
    var progress: TransferProgress
    let startedAt: Milliseconds
    /// The identity of the source of an upload in progress.
    var source: SourceIdentity?
    /// The digest of the file, as given by a list of digests or a Metalink in this run.
    var foundChecksum: String?
    /// The order to end the run. The first order applies, unless a stronger one follows.
    var order: RunOutcomePolicy.Order?
    /// The callers waiting for the conclusion. They are resumed when it has been written.
    var waiters: [CheckedContinuation<Void, Never>] = []
    var meter = RateMeter()
    /// Whether no byte has been received or sent for a while. A silent task lends its slot.
    var isSilent = false
    /// The monotonic time of the last change of the byte counts.
    var lastMoved: Milliseconds
    var lastTransferred: Int64 = 0
    /// The checkpoint in progress. The conclusion is written after it.
    var checkpoint: Task<Void, Never>?
    var lastCheckpoint: Milliseconds
    /// Whether the store refused the last checkpoint.
    var owesCheckpoint = false
    /// Whether the store refuses the conclusion, which is being retried.
    var cannotBeWritten = false
    /// Whether the task counts among those that use the network.
    var holdsSlot = true
    /// Whether the task was not started because its owner's quota is used up.
    var neverBegan = false
    /// The file's bytes recorded in the store at the end of the run.
    var keptBytes: Int64 = 0
    /// Whether the transfer has ended and the conclusion is being written.
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

    /// Records the current byte counts.
    ///
    /// - Returns: Whether these are the first bytes.
    func look(at now: Milliseconds) -> Bool {
        let transferred = progress.transferredBytes
        meter.note(transferred, at: now)
        guard transferred != lastTransferred else { return false }
        let isFirst = lastTransferred == 0
        lastTransferred = transferred
        lastMoved = now
        return isFirst
    }

    /// The bytes received or sent over all runs.
    var bytesFetched: Int64 { record.bytesFetched + progress.transferredBytes }

    /// Returns the stored status, updated with the live values.
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
