/// A file to fetch.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class DownloadRequest: Request, @unchecked Sendable {
    public let target: DownloadTarget

    init(
        _ original: TransferRequest, target: DownloadTarget, resumeData: ResumeData?, progress: TransferProgress,
        manager: SessionManager
    ) {
        self.target = target
        let delegate = DownloadTaskDelegate(resumeData: resumeData)
        super.init(original, delegate: delegate, progress: progress, manager: manager) {
            [session = manager.session] request in
            session.downloadTask(
                with: request, target: target, resumeData: delegate.resumeData, progress: progress)
        }
    }

    /// How a download request ended.
    public struct Response: Sendable {
        public var head: ResponseHead?
        public var result: Result<PublishedFile, TransferError>
        /// Where it failed: what the next request for the same target can resume with.
        public var resumeData: ResumeData?
    }

    private var downloadDelegate: DownloadTaskDelegate? { delegate as? DownloadTaskDelegate }

    public var resumeData: ResumeData? { downloadDelegate?.resumeData }

    /// Runs `handler` when the request is complete, on the thread that completed it.
    @discardableResult
    public func response(_ handler: @escaping @Sendable (Response) -> Void) -> Self {
        delegate.whenComplete { [self] in handler(outcome) }
        return self
    }

    /// The finished file.
    ///
    /// - Throws: why there is none.
    public var value: PublishedFile {
        get async throws(TransferError) {
            let result = await withCheckedContinuation { continuation in
                response { continuation.resume(returning: $0.result) }
            }
            return try result.get()
        }
    }

    private var outcome: Response {
        if let file = downloadDelegate?.file { return Response(head: response, result: .success(file)) }
        let error = delegate.error ?? TransferError(.internal, "the download ended without a word")
        return Response(head: response, result: .failure(error), resumeData: resumeData)
    }

    /// Called when every byte is here, before the file is synced, verified and named.
    @discardableResult
    public func onReceived(_ closure: @escaping @Sendable () -> Void) -> Self {
        downloadDelegate?.received = closure
        return self
    }

    /// Called whenever the session's `checkpointInterval` has been written.
    @discardableResult
    public func onCheckpointDue(_ closure: @escaping @Sendable () -> Void) -> Self {
        downloadDelegate?.wantsCheckpoint = closure
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

    /// Bytes written and not yet synced.
    public var unsyncedBytes: Int64 { (task as? DownloadTask)?.unsyncedBytes ?? 0 }
}
