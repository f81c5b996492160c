import TaskModel
import TaskStore
import Transfer

/// The end of a run, as the engine reports it.
struct RunEnding: Sendable {
    var id: TaskID
    var report: RunOutcomePolicy.Report
    var path: String?
    var size: Int64?
    var resumeData: ResumeData?
    /// A warning about the server's response.
    var warning: String?

    init(id: TaskID, report: RunOutcomePolicy.Report) {
        self.id = id
        self.report = report
    }

    /// Creates the end of a run that transferred nothing. The data of earlier runs still counts.
    init(_ work: TaskWork, failedBy error: TransferError) {
        id = work.record.id
        report = .init(error: error, attempts: 1, transferred: 0)
        resumeData = work.resumeData.flatMap { ResumeData(bytes: $0) }
    }

    /// Creates the end of a run whose file was already present.
    init(_ work: TaskWork, path: String, size: Int64, isVerified: Bool) {
        id = work.record.id
        report = .init(attempts: 1, transferred: 0, isVerified: isVerified)
        self.path = path
        self.size = max(size, work.record.bytesTotal ?? 0)
    }

    /// Creates the end of a run with a request.
    init(_ id: TaskID, of request: Request, error: TransferError?) {
        self.id = id
        warning = (request as? DownloadRequest)?.doubt ?? (request as? UploadRequest)?.doubt
        report = .init(
            error: error, attempts: request.retryCount + 1, transferred: request.mainProgress.transferredBytes)
    }

    // MARK: What it means

    /// The failure of the last attempt; `nil` where it succeeded or was stopped.
    var failure: TaskFailure? {
        guard let error = report.error, error.code != .cancelled else { return nil }
        return RunOutcomePolicy.failure(error)
    }

    /// Whether the task was not started because its owner's quota is used up.
    ///
    /// - Parameter hasRequest: Whether the run had a request.
    func neverBegan(hasRequest: Bool) -> Bool { report.error?.code == .allowanceUsedUp && !hasRequest }

    /// Returns the progress that is recorded.
    func progress(of run: RunningTask, neverBegan: Bool) -> TaskProgress {
        let record = run.record
        let isDownload = record.specification.kind == .download
        // A completed upload needs none.
        let source = isDownload || report.error == nil ? nil : run.source?.bytes ?? run.work.resumeData
        var progress = TaskProgress(
            bytesDone: size ?? (isDownload ? resumeData?.ranges.count ?? 0 : 0),
            bytesTotal: size ?? run.progress.totalBytes ?? record.bytesTotal,
            bytesFetched: run.bytesFetched, path: path,
            startedAt: record.startedAt ?? (neverBegan ? nil : run.startedAt),
            resumeData: isDownload ? resumeData?.bytes : source,
            foundChecksum: run.foundChecksum)
        if report.error == nil, size == 0 { progress.bytesTotal = 0 }
        return progress
    }

    /// Returns the report, completed by what the scheduler knows.
    func report(of run: RunningTask, bytesDone: Int64) -> RunOutcomePolicy.Report {
        var report = report
        report.transferred = run.progress.transferredBytes
        report.bytesDone = bytesDone
        if report.error != nil { report.beganAnew = beganAnew(run.work) }
        return report
    }

    /// Whether the data of earlier runs was discarded.
    private func beganAnew(_ work: TaskWork) -> Bool {
        guard let before = work.resumeData.flatMap({ ResumeData(bytes: $0) }) else {
            return work.record.bytesFetched > 0
        }
        return before.generation != resumeData?.generation
    }
}
