package import TaskModel
import TaskStore
import Transfer

/// A task with its history and the state of its transfer.
extension TaskQueue {
    /// The maximum number of ready tasks that are counted before a task.
    private static let longestPlace = 2_000
    private static let readTogether = 200

    /// Returns a task with its history, the state of its transfer and the reason why it does not run.
    ///
    /// - Returns: `nil` where the id is unknown or the caller may not see the task.
    package func detail(of id: TaskID, for caller: Caller) async throws(QueueError) -> TaskDetail? {
        guard let record = try stored({ () throws(StoreError) in try store.record(id, owner: caller.scope) }),
            let status = try await status(of: id, for: caller)
        else { return nil }
        let run = await onSharedThreads { await scheduler.liveRun(of: id) }
        var detail = TaskDetail(status)
        detail.insecure = record.specification.insecure
        if record.specification.kind == .download, status.state != .completed {
            // What a running task has is stored with each checkpoint.
            let work = try stored { () throws(StoreError) in try store.work(for: id) }
            detail.resumable = work?.resumeData.flatMap { ResumeData(bytes: $0) }?.sendsRanges
        }
        // The attempts of a run are stored before it ends.
        detail.history = try stored { () throws(StoreError) in try store.attempts(of: id) }
        if var run, status.state == .active {
            detail.live = await live(&run, record, status)
            let attempts = run.report.attempts(endedAt: nil, error: nil)
            detail.history = Self.joined(detail.history, attempts)
            detail.waitingFor = waitForTurn(run)
        } else if status.state != .active {
            detail.waitingFor = try await waitingFor(record, caller)
        }
        return detail
    }

    // MARK: Running tasks

    /// Returns the stored attempts and those of a run, which may have been stored meanwhile.
    private static func joined(_ stored: [TaskAttempt], _ attempts: [TaskAttempt]) -> [TaskAttempt] {
        let starts = Set(stored.map(\.startedAt))
        return Array((stored + attempts.filter { !starts.contains($0.startedAt) }).suffix(TaskAttempt.limit))
    }

    /// Returns the state of the transfer, and adds the exchanges under way to the report of the run.
    private func live(_ run: inout LiveRun, _ record: TaskRecord, _ status: TaskStatus) async -> LiveTransfer {
        var live = LiveTransfer(rateLimits: await rateLimits(of: record))
        var ranges = run.storedRanges
        switch run.request {
        case let download as DownloadRequest:
            guard let snapshot = await download.snapshot() else { break }
            live.connections = snapshot.connections.map {
                LiveConnection(address: $0.address, first: $0.first, next: $0.next, end: $0.end, rate: $0.rate)
            }
            ranges = snapshot.ranges
            run.report.exchanges += snapshot.exchanges
        case let upload as UploadRequest where status.connections > 0:
            live.connections = [
                LiveConnection(
                    address: await upload.peerAddress(), first: 0, next: status.bytesDone, end: status.bytesTotal,
                    rate: 0)
            ]
        default: break
        }
        // The throughput of a single connection is that of the task.
        if live.connections.count == 1 { live.connections[0].rate = status.rate ?? 0 }
        live.segments = LiveSegment.merged(
            ranges.ranges.map { LiveSegment(first: $0.lowerBound, end: $0.upperBound) })
        return live
    }

    /// Returns the rate limits that apply to a task.
    private func rateLimits(of record: TaskRecord) async -> [LiveRateLimit] {
        var limits: [LiveRateLimit] = []
        func add(_ scope: LiveRateLimit.Scope, _ rate: Int64?) {
            if let rate { limits.append(LiveRateLimit(scope: scope, rate: rate)) }
        }
        let isDownload = record.specification.kind == .download
        add(.task, record.specification.limit)
        let host = (try? TaskAddress(parsing: record.specification.url))?.hostKey
        let rates = host.flatMap { settings.hostRates.value(forOrigin: $0) }
        add(.host, isDownload ? rates?.download : rates?.upload)
        let inForce = await ratesInForce()
        let source = isDownload ? inForce.downloadSource : inForce.uploadSource
        add(source == .schedule ? .schedule : .daemon, isDownload ? inForce.download : inForce.upload)
        return limits
    }

    /// Returns the sentence for a running task whose requests wait for their turn; `nil` where none does.
    private func waitForTurn(_ run: LiveRun) -> String? {
        guard let request = run.request, request.mainProgress.awaitsTurn || request.progress.awaitsTurn,
            let url = request.request?.url, let host = (try? TaskAddress(parsing: url))?.hostKey,
            let rate = settings.hostRequestRates.value(forOrigin: host)
        else { return nil }
        let number = rate == rate.rounded() ? "\(Int(rate))" : "\(rate)"
        return "waits for its turn: \(host) gets at most \(number) requests a second (requests-per-second)"
    }

    // MARK: Tasks that do not run

    /// Returns why a task does not run and what happens next; `nil` for a task that has ended.
    private func waitingFor(_ record: TaskRecord, _ caller: Caller) async throws(QueueError) -> String? {
        let sentence = WaitingSentence(
            record: record, now: clock.now(), utcOffset: clock.utcOffset, isOwn: caller.uid == record.owner)
        guard record.lifecycle.state == .queued else { return sentence.text }
        let obstacle = await onSharedThreads { await scheduler.obstacle(of: record) }
        guard case .slots = obstacle else { return sentence.text(obstacle) }
        return sentence.text(obstacle, place: try await place(of: record.id))
    }

    /// Returns the number of ready tasks that start before a task; `nil` where the task is no longer ready.
    private func place(of id: TaskID) async throws(QueueError) -> WaitingSentence.Place? {
        var order = await queueOrder(TaskFilter(), for: Self.daemon)
        var count = 0
        while count < Self.longestPlace {
            let part = try order.next(Self.readTogether)
            if let index = part.firstIndex(of: id) { return .exactly(count + index) }
            if part.isEmpty { return nil }
            count += part.count
        }
        return .moreThan(count)
    }
}

/// The scheduler's knowledge of a running task besides its status.
struct LiveRun: Sendable {
    /// The attempts of the run so far. The last one is under way.
    var report: AttemptReport
    /// The current request; `nil` where there is none yet.
    var request: Request?
    /// The bytes that were there when the run started.
    var storedRanges: ByteRangeSet
}
