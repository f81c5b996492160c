/// Makes requests on a session: what most callers deal with.
///
/// Releasing the manager cancels what is left and lets every completion run: no request holds it, so keep it as long
/// as its requests are to go on.
public final class SessionManager: Sendable {
    public let session: Session
    public let delegate: SessionDelegate
    /// Whether a request starts as it is made; otherwise its `resume()` does, once its handlers are attached.
    public let startRequestsImmediately: Bool

    let adapters = AdapterHolder()

    public init(
        configuration: SessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate(),
        startRequestsImmediately: Bool = true
    ) throws(TransferError) {
        session = try Session(configuration: configuration, delegate: delegate)
        self.delegate = delegate
        self.startRequestsImmediately = startRequestsImmediately
    }

    /// - Returns: `nil` where `session` reports to another delegate.
    public init?(session: Session, delegate: SessionDelegate, startRequestsImmediately: Bool = true) {
        guard session.delegate === delegate else { return nil }
        self.session = session
        self.delegate = delegate
        self.startRequestsImmediately = startRequestsImmediately
    }

    deinit { session.invalidateAndCancel() }

    /// Asked before each attempt.
    public var adapter: (any RequestAdapter)? {
        get { adapters.adapter }
        set { adapters.adapter = newValue }
    }

    /// Asked after each failure; it lives in the delegate.
    public var retrier: (any RequestRetrier)? {
        get { delegate.retrier }
        set { delegate.retrier = newValue }
    }

    /// A file to fetch.
    ///
    /// - Parameters:
    ///   - resumeData: what an earlier request for the same target left.
    ///   - progress: for counts that go on from an earlier request's.
    public func download(
        _ request: TransferRequest, to target: DownloadTarget, resumingWith resumeData: ResumeData? = nil,
        progress: TransferProgress = TransferProgress()
    ) -> DownloadRequest {
        let download = DownloadRequest(
            request, target: target, resumeData: resumeData, progress: progress, manager: self)
        if startRequestsImmediately { download.resume() }
        return download
    }

    /// A file to send, as the body of `request`.
    public func upload(
        _ source: UploadSource, with request: TransferRequest, progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        let upload = UploadRequest(request, source: source, progress: progress, manager: self)
        if startRequestsImmediately { upload.resume() }
        return upload
    }
}
