public import HTTPTypes
import Synchronization

/// A factory of requests on a session; the main entry point for most callers.
///
/// Releasing the manager cancels its remaining requests and lets every completion run. Requests do not retain it, so
/// keep it for as long as they are to run.
public final class SessionManager: Sendable {
    /// The session that carries out the requests.
    public let session: Session
    /// The session's delegate; its closures replace the standard behaviour.
    public let delegate: SessionDelegate
    /// Whether a request starts as soon as a handler or an await asks for its end; otherwise its `resume()` starts it.
    /// A change applies to requests that are created afterwards.
    public var startRequestsImmediately: Bool {
        get { settings.withLock { $0.startsImmediately } }
        set { settings.withLock { $0.startsImmediately = newValue } }
    }

    /// The context of handlers that name none, by default ``HandlerQueue/shared``. A change applies to requests that
    /// are created afterwards.
    public var callbackQueue: HandlerQueue {
        get { settings.withLock { $0.queue } }
        set { settings.withLock { $0.queue = newValue } }
    }

    private struct Settings {
        var startsImmediately: Bool
        var queue: HandlerQueue
    }

    private let settings: Mutex<Settings>
    let adapters = AdapterHolder()

    /// Creates a manager with a session of its own.
    ///
    /// - Parameters:
    ///   - configuration: the configuration, which is copied.
    ///   - delegate: the new session's delegate.
    ///   - serverTrustPolicyManager: replaces the configuration's trust policies.
    ///   - startRequestsImmediately: see the property of the same name.
    ///   - eventMonitors: the observers of the requests.
    ///   - queue: the context of handlers that name none.
    /// - Throws: the errors of ``Session/init(configuration:delegate:eventMonitors:)``.
    public init(
        configuration: SessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil, startRequestsImmediately: Bool = true,
        eventMonitors: [any EventMonitor] = [], queue: HandlerQueue = .shared
    ) throws(TransferError) {
        var configuration = configuration
        if let serverTrustPolicyManager { configuration.trustPolicies = serverTrustPolicyManager }
        session = try Session(configuration: configuration, delegate: delegate, eventMonitors: eventMonitors)
        self.delegate = delegate
        settings = Mutex(Settings(startsImmediately: startRequestsImmediately, queue: queue))
    }

    /// Creates a manager for an existing session.
    ///
    /// - Parameters:
    ///   - session: the session.
    ///   - delegate: the delegate of `session`.
    ///   - serverTrustPolicyManager: replaces the trust policies of `session`.
    ///   - startRequestsImmediately: see the property of the same name.
    ///   - queue: the context of handlers that name none.
    /// - Returns: `nil` if `session` has another delegate.
    public init?(
        session: Session, delegate: SessionDelegate, serverTrustPolicyManager: ServerTrustPolicyManager? = nil,
        startRequestsImmediately: Bool = true, queue: HandlerQueue = .shared
    ) {
        guard session.delegate === delegate else { return nil }
        if let serverTrustPolicyManager { session.serverTrustPolicyManager = serverTrustPolicyManager }
        self.session = session
        self.delegate = delegate
        settings = Mutex(Settings(startsImmediately: startRequestsImmediately, queue: queue))
    }

    deinit { session.release() }

    /// The adapter, called before each attempt.
    public var adapter: (any RequestAdapter)? {
        get { adapters.adapter }
        set { adapters.adapter = newValue }
    }

    /// The retrier, consulted after each failure; stored in the delegate.
    public var retrier: (any RequestRetrier)? {
        get { delegate.retrier }
        set { delegate.retrier = newValue }
    }

    // MARK: Data

    /// Returns a data request.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - modifier: changes the request before it is sent.
    public func request(_ request: some RequestConvertible, modifier: RequestModifier? = nil) -> DataRequest {
        make(RequestIntention.make(request, modifier), body: .none)
    }

    /// Returns a data request.
    ///
    /// - Parameters:
    ///   - url: an absolute URL.
    ///   - method: the method, by default `GET`.
    ///   - parameters: encoded into the query or the body, as `encoding` decides.
    ///   - encoding: encodes the parameters; used only if there are any.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - modifier: changes the request after the parameters are encoded.
    public func request(
        _ url: some URLConvertible, method: HTTPRequest.Method = .get, parameters: Parameters = [:],
        encoding: any ParameterEncoding = URLEncoding(), headers: HTTPFields = [:], modifier: RequestModifier? = nil
    ) -> DataRequest {
        let encoded = Self.encode(url, method, parameters, encoding, headers, modifier)
        return make(encoded.map(\.request), body: (try? encoded.get())?.requestBody ?? .none)
    }

    static func encode(
        _ url: some URLConvertible, _ method: HTTPRequest.Method, _ parameters: Parameters,
        _ encoding: any ParameterEncoding, _ headers: HTTPFields, _ modifier: RequestModifier?
    ) -> Result<EncodedRequest, TransferError> {
        Result { () throws(TransferError) in
            let request = TransferRequest(url: try url.asURLText(), method: method, headerFields: headers)
            var encoded =
                parameters.isEmpty
                ? EncodedRequest(request: request, body: nil) : try encoding.encode(request, with: parameters)
            try RequestIntention.apply(modifier, to: &encoded.request)
            return encoded
        }
    }

    func make(_ intention: Result<TransferRequest, TransferError>, body: RequestBody) -> DataRequest {
        DataRequest(
            intention, body: { body }, delegate: delegate.makeDataTaskDelegate(), manager: self)
    }

    // MARK: Downloads

    /// Returns a request to download a file.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - target: the location of the part file and the name of the finished file.
    ///   - resumeData: the resume data of an earlier request for the same target.
    ///   - progress: continues the counts of an earlier request.
    ///   - modifier: changes the request before it is sent.
    public func download(
        _ request: some RequestConvertible, to target: DownloadTarget, resumingWith resumeData: ResumeData? = nil,
        progress: TransferProgress = TransferProgress(), modifier: RequestModifier? = nil
    ) -> DownloadRequest {
        DownloadRequest(
            RequestIntention.make(request, modifier), placement: .fixed(target), resumeData: resumeData,
            progress: progress, manager: self)
    }

    // MARK: Uploads

    /// Returns a request to send a body.
    ///
    /// - Parameters:
    ///   - body: data, a file or a stream.
    ///   - request: the URL or request to send to; a URL alone is sent to with `POST`.
    ///   - progress: counts the bytes of the body.
    ///   - modifier: changes the request before it is sent.
    public func upload(
        _ body: RequestBody, with request: some RequestConvertible, progress: TransferProgress = TransferProgress(),
        modifier: RequestModifier? = nil
    ) -> UploadRequest {
        UploadRequest(RequestIntention.make(sending: request, modifier), body: body, progress: progress, manager: self)
    }

    /// Returns a request to send a file as the body of `request`; a URL alone is sent to with `POST`.
    public func upload(
        _ source: UploadSource, with request: some RequestConvertible,
        progress: TransferProgress = TransferProgress(), modifier: RequestModifier? = nil
    ) -> UploadRequest {
        upload(.file(source), with: request, progress: progress, modifier: modifier)
    }

    // MARK: Retrying by hand

    /// Starts another attempt of a request; see ``Request/retry()``.
    ///
    /// - Returns: `false` if there is no original request to repeat, or if the request runs or never ran.
    @discardableResult
    public func retry(_ request: Request) -> Bool { request.retryByHand() }
}
