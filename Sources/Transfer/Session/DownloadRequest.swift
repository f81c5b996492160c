/// A request that downloads a file.
///
/// A download by another method than `GET`, or with a body, uses one connection and no mirrors, and has no resume data:
/// ranges are defined for `GET` only (RFC 9110, section 14.2). A later attempt fetches the whole again.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class DownloadRequest: Request, @unchecked Sendable {
    let downloadDelegate: DownloadTaskDelegate
    let body: RequestBody

    init(
        _ intention: Result<TransferRequest, TransferError>, body: RequestBody = .none, placement: DownloadPlacement,
        resumeData: ResumeData?, progress: TransferProgress, manager: SessionManager
    ) {
        let delegate = manager.delegate.makeDownloadTaskDelegate()
        delegate.prepare(placement: placement, resumeData: resumeData, progress: progress)
        downloadDelegate = delegate
        self.body = body
        super.init(intention, delegate: delegate, progress: progress, manager: manager) {
            [session = manager.session] request in
            DownloadTask(
                request, body: body, placement: delegate.nextPlacement, resumeData: delegate.resumeData,
                progress: progress, session: session, unadapted: try? intention.get(), mismatches: delegate.mismatches)
        }
    }

    /// The type that a download's handlers receive.
    public typealias Response = DownloadResponse<PublishedFile>

    /// Data with which another request can resume this one, if it failed or was cancelled.
    public var resumeData: ResumeData? { downloadDelegate.resumeData }

    /// The number of attempts so far whose bytes did not match their digest.
    public var mismatchCount: Int { downloadDelegate.mismatches.count }

    /// The last warning about a server's statements on the file, such as a web page under the name of an archive; `nil`
    /// if there is none.
    public var doubt: String? { downloadDelegate.doubt }

    /// Cancels the request.
    ///
    /// - Parameter keepingBytes: whether the received bytes are kept, with resume data for them. Otherwise nothing
    ///   stays on disk, unless every byte was received and the file is published anyway.
    @discardableResult
    public func cancel(keepingBytes: Bool) -> Self {
        if !keepingBytes, !delegate.isComplete { downloadDelegate.setLeavesNothing() }
        end { task in
            if let task = task as? DownloadTask { task.cancel(keepingBytes: keepingBytes) } else { task.cancel() }
        }
        return self
    }

    override func complete(_ error: TransferError?) {
        // Only the first end settles what is on disk; later calls have no effect.
        guard !delegate.isComplete else { return }
        super.complete(error.map(downloadDelegate.settle))
    }

    // MARK: Handlers

    /// Runs `handler` when the request is complete.
    @discardableResult
    public func response(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (Response) -> Void
    ) -> Self {
        delegate.queue.add(on: queue ?? callbackQueue) { [self] in handler(report()) }
        startIfImmediate()
        return self
    }

    /// The result of the request, once it is complete. Cancelling the Swift task that waits cancels the request, which
    /// keeps its bytes.
    public var outcome: Response {
        get async {
            await completion()
            return report()
        }
    }

    /// The finished file. Cancelling the Swift task that waits cancels the request, which keeps its bytes.
    ///
    /// - Throws: the reason why there is none, with resume data if there are bytes to resume from.
    public var value: PublishedFile {
        get async throws(TransferError) {
            await completion()
            return try report().result.get()
        }
    }

    private func report() -> Response {
        let file = downloadDelegate.file
        let error = delegate.error ?? TransferError(.internal, "the download ended without a result")
        return Response(
            request: request, head: response, file: file,
            result: file.map { .success($0) } ?? .failure(error), resumeData: resumeData, metrics: metrics)
    }

    // MARK: Checkpoints

    /// Sets a closure that is called when every byte is received, before the file is synced, verified and renamed.
    @discardableResult
    public func onReceived(_ closure: @escaping @Sendable () -> Void) -> Self {
        downloadDelegate.received = closure
        return self
    }

    /// Sets a closure that is called each time the session's `checkpointInterval` has been written.
    @discardableResult
    public func onCheckpointDue(_ closure: @escaping @Sendable () -> Void) -> Self {
        downloadDelegate.wantsCheckpoint = closure
        return self
    }

    /// Syncs the bytes written so far to the disk.
    ///
    /// - Returns: resume data for them; `nil` if nothing has been written.
    /// - Throws: an error of the sync. Only earlier resume data are valid then.
    public func checkpoint() async throws(TransferError) -> ResumeData? {
        try await (task as? DownloadTask)?.checkpoint()
    }

    /// Records that the resume data of a checkpoint are stored crash-safely. Required if the session has a
    /// `checkpointLimit`.
    public func confirm(_ resumeData: ResumeData) {
        (task as? DownloadTask)?.confirm(resumeData)
    }

    /// Whether bytes have been received that no ``checkpoint()`` covers.
    public var needsCheckpoint: Bool { (task as? DownloadTask)?.needsCheckpoint ?? false }

    /// The number of bytes that are written but not yet synced.
    public var unsyncedBytes: Int64 { (task as? DownloadTask)?.unsyncedBytes ?? 0 }
}

extension DownloadRequest {
    /// Cancels the request, and passes on data with which another request can resume it.
    ///
    /// - Parameters:
    ///   - queue: the context in which `completion` runs.
    ///   - completion: runs when the request is complete. Its argument is `nil` if no byte was received, or if the
    ///     request completed anyway.
    public func cancel(
        queue: HandlerQueue? = nil, byProducingResumeData completion: @escaping @Sendable (ResumeData?) -> Void
    ) {
        cancel()
        response(queue: queue) { completion($0.resumeData) }
    }

    /// Cancels the request.
    ///
    /// - Returns: data with which another request can resume it; `nil` if no byte was received, or if the request
    ///   completed anyway.
    public func cancelProducingResumeData() async -> ResumeData? {
        cancel()
        return await outcome.resumeData
    }
}

extension DownloadRequest {
    /// A closure that decides the place of the file as a file URL, by the temporary file and the response's head.
    ///
    ///     let destination: DownloadRequest.Destination = { temporary, head in
    ///         (folder.appending(path: temporary.suggestedName), [.removePreviousFile])
    ///     }
    ///     let file = try await manager.download(url, to: destination).value
    public typealias Destination = DownloadDestination.DecideURL

    /// The same as ``Destination``.
    public typealias DownloadFileDestination = Destination

    /// The permitted changes to the file system.
    public typealias Options = DownloadDestination.Options
}

extension DownloadRequest {
    /// Returns the connections and the bytes of the running download. The loop of the download is asked, so the call
    /// costs the transfer nothing otherwise.
    ///
    /// - Returns: `nil` before the download's beginning and after its end, and where the loop does not answer within
    ///   a second.
    public func snapshot() async -> DownloadSnapshot? {
        guard let task = task as? DownloadTask else { return nil }
        return await task.ask { core in (task.run(on: core) as? any DownloadTaskRun)?.snapshot() }
    }
}
