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
    /// The number of the start; see ``StartRecords``.
    let startNumber: Int
    /// The time of the start on the clock of the engine's metrics.
    let began = QueueClock.system.monotonic()
    /// The identity of the source of an upload in progress.
    var source: SourceIdentity?
    /// The digest of the file, as given by a list of digests or a Metalink in this run.
    var foundChecksum: String?
    var lifecycle = RunLifecycle()
    var activity: RunActivity
    var checkpoints: RunCheckpoints
    /// The callers waiting for the conclusion. They are resumed when it has been written.
    var waiters: [CheckedContinuation<Void, Never>] = []

    init(
        work: TaskWork, place: TaskChooser.Place, request: Request?, manager: SessionManager,
        progress: TransferProgress, startedAt: Milliseconds, startNumber: Int,
        monotonic: Milliseconds
    ) {
        self.work = work
        self.place = place
        self.request = request
        self.manager = manager
        self.progress = progress
        self.startedAt = startedAt
        self.startNumber = startNumber
        activity = RunActivity(now: monotonic)
        checkpoints = RunCheckpoints(now: monotonic)
    }

    var record: TaskRecord { work.record }

    /// The bytes received or sent over all runs.
    var bytesFetched: Int64 { record.bytesFetched + progress.transferredBytes }

    /// The bytes of this run that metrics have counted.
    private var countedBytes: Int64 = 0

    /// Returns the bytes received or sent since the last call.
    func takeUncountedBytes() -> Int64 {
        let transferred = progress.transferredBytes
        defer { countedBytes = max(countedBytes, transferred) }
        return max(0, transferred.subtractingClamped(countedBytes))
    }

    /// The attempts so far.
    var attempts: AttemptReport {
        AttemptReport(
            startedAt: startedAt, began: began, failed: request?.failedAttempts ?? [],
            exchanges: request?.task?.metrics.exchanges ?? [], transferred: progress.transferredBytes)
    }

    /// The time without a byte after which the transfer connects again, in milliseconds.
    var stallTimeout: Milliseconds {
        record.specification.stallTimeout ?? manager.session.configuration.stallTimeout
    }

    /// Returns the stored status, updated with the live values.
    ///
    /// - Parameters:
    ///   - monotonic: the monotonic time.
    ///   - now: the time since 1970.
    func status(over stored: TaskRecord, at monotonic: Milliseconds, now: Milliseconds) -> TaskStatus {
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
        status.rate = activity.rate(progress.transferredBytes, now: monotonic) ?? 0
        if let rate = status.rate, rate > 0, let total = progress.totalBytes {
            let left = max(0, total.subtractingClamped(progress.completedBytes))
            status.eta = left / rate + (left % rate == 0 ? 0 : 1)
        }
        if activity.holdsSlot {
            let offset = now.subtractingClamped(monotonic)
            status.idleSince = activity.lastMoved.addingClamped(offset)
            status.reconnectsAt = activity.stall(after: stallTimeout)?.addingClamped(offset)
        }
        status.connections = activity.holdsSlot ? max(1, progress.connections) : 0
        status.attempts = record.attempts + (request?.retryCount ?? 0) + 1
        status.startedAt = stored.startedAt ?? startedAt
        status.error = nil
        status.checksum = stored.specification.checksum ?? foundChecksum ?? stored.foundChecksum
        return status
    }
}
