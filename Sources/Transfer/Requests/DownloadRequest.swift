/// A file to fetch.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class DownloadRequest: Request, @unchecked Sendable {
    private let downloadDelegate: DownloadTaskDelegate

    init(
        _ intention: Result<TransferRequest, TransferError>, placement: DownloadPlacement, resumeData: ResumeData?,
        progress: TransferProgress, manager: SessionManager
    ) {
        let delegate = DownloadTaskDelegate(placement: placement, resumeData: resumeData, progress: progress)
        downloadDelegate = delegate
        super.init(intention, delegate: delegate, progress: progress, manager: manager) {
            [session = manager.session] request in
            DownloadTask(
                request, placement: delegate.nextPlacement, resumeData: delegate.resumeData, progress: progress,
                session: session, wish: try? intention.get(), mismatches: delegate.mismatches)
        }
    }

    /// What the handlers of a download get.
    public typealias Response = DownloadResponse<PublishedFile>

    /// Where it failed, or was cancelled: what another request can go on with.
    public var resumeData: ResumeData? { downloadDelegate.resumeData }

    /// Attempts so far whose bytes were not those that their digest wants.
    public var mismatchCount: Int { downloadDelegate.mismatches.count }

    /// Ends the request.
    ///
    /// - Parameter keepingBytes: whether what has come is kept, with resume data for it; otherwise nothing stays, unless
    ///   every byte was there and the file comes to its name all the same.
    @discardableResult
    public func cancel(keepingBytes: Bool) -> Self {
        if !keepingBytes, !delegate.isComplete { downloadDelegate.setLeavesNothing() }
        end { task in
            if let task = task as? DownloadTask { task.cancel(keepingBytes: keepingBytes) } else { task.cancel() }
        }
        return self
    }

    override func complete(_ error: TransferError?) {
        // However often it is told so: what is on disk is settled by the first end alone.
        guard !delegate.isComplete else { return }
        super.complete(error.map(downloadDelegate.settle))
    }

    // MARK: Handlers

    /// Runs `handler` when the request is complete.
    @discardableResult
    public func response(
        queue: HandlerQueue = .shared, _ handler: @escaping @Sendable (Response) -> Void
    ) -> Self {
        delegate.queue.add(on: queue) { [self] in handler(report()) }
        startIfImmediate()
        return self
    }

    /// How the request ended. Cancelling the Swift task that waits cancels the request, which keeps its bytes.
    public var outcome: Response {
        get async {
            await completion()
            return report()
        }
    }

    /// The finished file. Cancelling the Swift task that waits cancels the request, which keeps its bytes.
    ///
    /// - Throws: why there is none, with resume data where bytes are there that still count.
    public var value: PublishedFile {
        get async throws(TransferError) {
            await completion()
            return try report().result.get()
        }
    }

    private func report() -> Response {
        let file = downloadDelegate.file
        let error = delegate.error ?? TransferError(.internal, "the download ended without a word")
        return Response(
            request: request, head: response, file: file,
            result: file.map { .success($0) } ?? .failure(error), resumeData: resumeData, metrics: metrics)
    }

    // MARK: Checkpoints

    /// Called when every byte is here, before the file is synced, verified and named.
    @discardableResult
    public func onReceived(_ closure: @escaping @Sendable () -> Void) -> Self {
        downloadDelegate.received = closure
        return self
    }

    /// Called whenever the session's `checkpointInterval` has been written.
    @discardableResult
    public func onCheckpointDue(_ closure: @escaping @Sendable () -> Void) -> Self {
        downloadDelegate.wantsCheckpoint = closure
        return self
    }

    /// Brings what is written so far to the disk.
    ///
    /// - Returns: resume data for it; `nil` where nothing has been written.
    /// - Throws: where the sync failed: then only earlier resume data count.
    public func checkpoint() async throws(TransferError) -> ResumeData? {
        try await (task as? DownloadTask)?.checkpoint()
    }

    /// The resume data of a checkpoint have been kept where they outlast a crash: needed where the session has a
    /// `checkpointLimit`.
    public func confirm(_ resumeData: ResumeData) {
        (task as? DownloadTask)?.confirm(resumeData)
    }

    /// Whether bytes have been received that no ``checkpoint()`` covers.
    public var needsCheckpoint: Bool { (task as? DownloadTask)?.needsCheckpoint ?? false }

    /// Bytes written and not yet synced.
    public var unsyncedBytes: Int64 { (task as? DownloadTask)?.unsyncedBytes ?? 0 }
}
