import HTTPTypes
import Synchronization

/// Makes requests on a session: what most callers deal with.
///
/// Releasing the manager cancels what is left and lets every completion run: no request holds it, so keep it as long
/// as its requests are to go on.
public final class SessionManager: Sendable {
    /// Carries the requests out.
    public let session: Session
    /// The session's; its closures take the place of what happens otherwise.
    public let delegate: SessionDelegate
    /// Whether a request starts by itself as soon as somebody wants to hear of its end; otherwise its `resume()` does.
    public let startRequestsImmediately: Bool

    let adapters = AdapterHolder()

    /// Makes a session of its own.
    ///
    /// - Parameters:
    ///   - configuration: copied, and not read again.
    ///   - delegate: the new session's.
    ///   - serverTrustPolicyManager: in the place of the configuration's.
    ///   - startRequestsImmediately: see the property of that name.
    /// - Throws: as ``Session/init(configuration:delegate:)``.
    public init(
        configuration: SessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil, startRequestsImmediately: Bool = true
    ) throws(TransferError) {
        var configuration = configuration
        if let serverTrustPolicyManager { configuration.trustPolicies = serverTrustPolicyManager }
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

    // MARK: Data

    /// Something to ask for.
    public func request(_ request: some RequestConvertible) -> DataRequest {
        make(Result { () throws(TransferError) in try request.asRequest() }, body: .none)
    }

    /// Something to ask for.
    ///
    /// - Parameters:
    ///   - url: absolute.
    ///   - method: `GET` unless said otherwise.
    ///   - parameters: go into the query or the body, as `encoding` has it.
    ///   - encoding: puts the parameters in; asked only where there are any.
    ///   - headers: fields of this request, before the session's.
    public func request(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: Parameters = [:],
        encoding: any ParameterEncoding = URLEncoding(), headers: HTTPFields = [:]
    ) -> DataRequest {
        let encoded = Result { () throws(TransferError) in
            let request = TransferRequest(url: try url.asURLText(), method: method, headerFields: headers)
            return parameters.isEmpty
                ? EncodedRequest(request: request, body: nil) : try encoding.encode(request, with: parameters)
        }
        return make(encoded.map(\.request), body: (try? encoded.get())?.body.map { .data($0) } ?? .none)
    }

    private func make(_ intention: Result<TransferRequest, TransferError>, body: RequestBody) -> DataRequest {
        let progress = TransferProgress()
        return DataRequest(
            intention, body: { body }, delegate: DataTaskDelegate(progress: progress), progress: progress,
            manager: self,
            isUpload: false)
    }

    // MARK: Downloads

    /// A file to fetch.
    ///
    /// - Parameters:
    ///   - request: what to ask for.
    ///   - target: where the bytes go, and how the file will be called.
    ///   - resumeData: what an earlier request for the same target left.
    ///   - progress: for counts that go on from an earlier request's.
    public func download(
        _ request: some RequestConvertible, to target: DownloadTarget, resumingWith resumeData: ResumeData? = nil,
        progress: TransferProgress = TransferProgress()
    ) -> DownloadRequest {
        DownloadRequest(
            Result { () throws(TransferError) in try request.asRequest() }, placement: .fixed(target),
            resumeData: resumeData, progress: progress, manager: self)
    }

    // MARK: Uploads

    /// A body to send.
    ///
    /// - Parameters:
    ///   - body: data, a file or a stream.
    ///   - request: where to; a URL alone is sent to by `POST`.
    ///   - progress: counts the bytes of the body.
    public func upload(
        _ body: RequestBody, with request: some RequestConvertible, progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        UploadRequest(Self.wish(toSend: request), body: body, progress: progress, manager: self)
    }

    static func wish(toSend request: some RequestConvertible) -> Result<TransferRequest, TransferError> {
        Result { () throws(TransferError) in
            var wish = try request.asRequest()
            if request is any URLConvertible { wish.method = .post }
            return wish
        }
    }

    /// A file to send, as the body of `request`; a URL alone is sent to by `POST`.
    public func upload(
        _ source: UploadSource, with request: some RequestConvertible,
        progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        upload(.file(source), with: request, progress: progress)
    }

    // MARK: Once more

    /// Has a request that waits for its next attempt begin it now.
    ///
    /// - Returns: false where there is no original task to repeat, or nothing waits.
    @discardableResult
    public func retry(_ request: Request) -> Bool { request.retryByHand() }
}
