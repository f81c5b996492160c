extension SessionDelegate {
    /// Closures in the place of the defaults, one for each callback; where an answer is wanted, a second form takes a
    /// completion, which may be called later and from any thread. If both are set, the one with the completion counts.
    ///
    /// They run on the session's threads and must not block.
    public struct Overrides: Sendable {
        // MARK: Session

        /// The session is at its end: invalidated, and its last task complete.
        public var sessionDidBecomeInvalid: (@Sendable (Session, TransferError?) -> Void)?
        /// What to do about a challenge: of every server's trust, and for credentials where the task has no request.
        public var sessionDidReceiveChallenge:
            (@Sendable (Session, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        /// As ``sessionDidReceiveChallenge``, with a completion.
        public var sessionDidReceiveChallengeWithCompletion:
            (
                @Sendable (
                    Session, AuthenticationChallenge, @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
                ) -> Void
            )?
        /// All events of a session have been delivered: in the place of the manager's `backgroundCompletionHandler`.
        public var sessionDidFinishEvents: (@Sendable (Session) -> Void)?

        /// The session's watchdog found an internal fault and has kicked the transfer: a text for the log. Counted by
        /// ``Session/internalFaults``.
        public var sessionDidFindFault: (@Sendable (_ description: String) -> Void)?

        // MARK: Any task

        /// What to ask next in the place of `newRequest`; `nil`: the redirecting answer is the final one.
        public var taskWillPerformHTTPRedirection:
            (
                @Sendable (any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest)
                    -> TransferRequest?
            )?
        /// As ``taskWillPerformHTTPRedirection``, with a completion.
        public var taskWillPerformHTTPRedirectionWithCompletion:
            (
                @Sendable (
                    any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest,
                    @escaping @Sendable (TransferRequest?) -> Void
                ) -> Void
            )?
        /// What to do about a challenge, in the place of the request's own answer.
        public var taskDidReceiveChallenge:
            (@Sendable (any SessionTask, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        /// As ``taskDidReceiveChallenge``, with a completion.
        public var taskDidReceiveChallengeWithCompletion:
            (
                @Sendable (
                    any SessionTask, AuthenticationChallenge,
                    @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
                ) -> Void
            )?
        /// A stream of the same length for a body that has to be sent again; `nil`: the body's own is made anew.
        public var taskNeedNewBodyStream: (@Sendable (any SessionTask) -> BodyStream?)?
        /// As ``taskNeedNewBodyStream``, with a completion.
        public var taskNeedNewBodyStreamWithCompletion:
            (@Sendable (any SessionTask, @escaping @Sendable (BodyStream?) -> Void) -> Void)?
        /// A piece of a body went out: its bytes, those that went out so far, and those of the whole, where known.
        public var taskDidSendBodyData:
            (@Sendable (any SessionTask, _ bytes: Int64, _ total: Int64, _ expected: Int64?) -> Void)?
        /// What each exchange of a task took, just before the task is complete.
        public var taskDidFinishCollectingMetrics: (@Sendable (any SessionTask, TransferMetrics) -> Void)?
        /// In the place of validation and retry: the request is complete with `error`, and its handlers follow.
        public var taskDidComplete: (@Sendable (any SessionTask, _ error: TransferError?) -> Void)?

        // MARK: Data tasks

        /// What is to become of an answer, before its body is taken.
        public var dataTaskDidReceiveResponse: (@Sendable (DataTask, ResponseHead) -> ResponseDisposition)?
        /// As ``dataTaskDidReceiveResponse``, with a completion.
        public var dataTaskDidReceiveResponseWithCompletion:
            (@Sendable (DataTask, ResponseHead, @escaping @Sendable (ResponseDisposition) -> Void) -> Void)?
        /// After ``ResponseDisposition/becomeDownload(_:)``: the second task goes on with the first one's answer.
        public var dataTaskDidBecomeDownloadTask: (@Sendable (DataTask, DownloadTask) -> Void)?
        /// In the place of keeping the bytes, or handing them to the request's stream.
        public var dataTaskDidReceiveData: (@Sendable (DataTask, [UInt8]) -> Void)?
        /// What to store of a whole answer that may be stored; `nil`: nothing. The task is complete after that.
        public var dataTaskWillCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)?
        /// As ``dataTaskWillCacheResponse``, with a completion.
        public var dataTaskWillCacheResponseWithCompletion:
            (@Sendable (DataTask, CachedResponse, @escaping @Sendable (CachedResponse?) -> Void) -> Void)?

        // MARK: Download tasks

        /// The file is whole, verified and in its final place.
        public var downloadTaskDidFinishDownloading: (@Sendable (DownloadTask, PublishedFile) -> Void)?
        /// Bytes reached the part file: so many, so many of the file so far, and those of the whole, where known.
        public var downloadTaskDidWriteData:
            (@Sendable (DownloadTask, _ bytes: Int64, _ total: Int64, _ expected: Int64?) -> Void)?
        /// The server agreed to go on: bytes that are not fetched again, and those of the whole, where known.
        public var downloadTaskDidResumeAtOffset:
            (@Sendable (DownloadTask, _ offset: Int64, _ expected: Int64?) -> Void)?
        /// Bytes that were there no longer count.
        public var downloadTaskDidRestart: (@Sendable (DownloadTask, _ reason: String) -> Void)?
        /// What a server says contradicts what was known, and does not count: worth a look.
        public var downloadTaskDidDoubt: (@Sendable (DownloadTask, _ reason: String) -> Void)?
        /// Every byte is here; the file is about to be synced, verified and named.
        public var downloadTaskDidReceiveAll: (@Sendable (DownloadTask) -> Void)?
        /// So many bytes as ``SessionConfiguration/checkpointInterval`` says were written since the last time.
        public var downloadTaskWantsCheckpoint: (@Sendable (DownloadTask) -> Void)?

        // MARK: Stream tasks

        /// Nothing more comes from the peer, by its doing or by ours; what has come may still be there to be read. Not
        /// called where the connection breaks: the task is complete then.
        public var streamTaskReadClosed: (@Sendable (StreamTask) -> Void)?
        /// The FIN is on its way, after everything that was written. Not called where the connection breaks.
        public var streamTaskWriteClosed: (@Sendable (StreamTask) -> Void)?
        /// The kernel would take another source address for the peer by now. Looked at only when
        /// ``Session/routesDidChange()`` is called, and told once a task; a connection through a proxy has the proxy
        /// for its peer.
        public var streamTaskBetterRouteDiscovered: (@Sendable (StreamTask) -> Void)?
        /// What was asked of the task is done, and the rest belongs to the two of these.
        public var streamTaskDidBecomeInputAndOutputStreams:
            (@Sendable (StreamTask, _ reader: StreamReader, _ writer: StreamWriter) -> Void)?

        /// No closures.
        public init() {}

        /// The callbacks that a closure stands in for.
        var callbacks: Callbacks {
            var set: Callbacks = []
            func note(_ callback: Callbacks, _ isSet: Bool) { if isSet { set.insert(callback) } }
            note(.sessionDidBecomeInvalid, sessionDidBecomeInvalid != nil)
            note(
                .sessionDidReceiveChallenge,
                sessionDidReceiveChallenge != nil || sessionDidReceiveChallengeWithCompletion != nil)
            note(.sessionDidFinishEvents, sessionDidFinishEvents != nil)
            note(.sessionDidFindFault, sessionDidFindFault != nil)
            note(
                .taskWillPerformHTTPRedirection,
                taskWillPerformHTTPRedirection != nil || taskWillPerformHTTPRedirectionWithCompletion != nil)
            note(
                .taskDidReceiveChallenge,
                taskDidReceiveChallenge != nil || taskDidReceiveChallengeWithCompletion != nil)
            note(.taskNeedNewBodyStream, taskNeedNewBodyStream != nil || taskNeedNewBodyStreamWithCompletion != nil)
            note(.taskDidSendBodyData, taskDidSendBodyData != nil)
            note(.taskDidFinishCollectingMetrics, taskDidFinishCollectingMetrics != nil)
            note(.taskDidComplete, taskDidComplete != nil)
            note(
                .dataTaskDidReceiveResponse,
                dataTaskDidReceiveResponse != nil || dataTaskDidReceiveResponseWithCompletion != nil)
            note(.dataTaskDidBecomeDownloadTask, dataTaskDidBecomeDownloadTask != nil)
            note(.dataTaskDidReceiveData, dataTaskDidReceiveData != nil)
            note(
                .dataTaskWillCacheResponse,
                dataTaskWillCacheResponse != nil || dataTaskWillCacheResponseWithCompletion != nil)
            note(.downloadTaskDidFinishDownloading, downloadTaskDidFinishDownloading != nil)
            note(.downloadTaskDidWriteData, downloadTaskDidWriteData != nil)
            note(.downloadTaskDidResumeAtOffset, downloadTaskDidResumeAtOffset != nil)
            note(.downloadTaskDidRestart, downloadTaskDidRestart != nil)
            note(.downloadTaskDidDoubt, downloadTaskDidDoubt != nil)
            note(.downloadTaskDidReceiveAll, downloadTaskDidReceiveAll != nil)
            note(.downloadTaskWantsCheckpoint, downloadTaskWantsCheckpoint != nil)
            note(.streamTaskReadClosed, streamTaskReadClosed != nil)
            note(.streamTaskWriteClosed, streamTaskWriteClosed != nil)
            note(.streamTaskBetterRouteDiscovered, streamTaskBetterRouteDiscovered != nil)
            note(.streamTaskDidBecomeInputAndOutputStreams, streamTaskDidBecomeInputAndOutputStreams != nil)
            return set
        }
    }

    /// What a session tells its delegate.
    public struct Callbacks: OptionSet, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// ``SessionDelegate/Overrides/sessionDidBecomeInvalid``
        public static let sessionDidBecomeInvalid = Callbacks(rawValue: 1 << 0)
        /// ``SessionDelegate/Overrides/sessionDidReceiveChallenge``, in either form
        public static let sessionDidReceiveChallenge = Callbacks(rawValue: 1 << 1)
        /// ``SessionDelegate/Overrides/sessionDidFinishEvents``
        public static let sessionDidFinishEvents = Callbacks(rawValue: 1 << 2)
        /// ``SessionDelegate/Overrides/taskWillPerformHTTPRedirection``, in either form
        public static let taskWillPerformHTTPRedirection = Callbacks(rawValue: 1 << 3)
        /// ``SessionDelegate/Overrides/taskDidReceiveChallenge``, in either form
        public static let taskDidReceiveChallenge = Callbacks(rawValue: 1 << 4)
        /// ``SessionDelegate/Overrides/taskNeedNewBodyStream``, in either form
        public static let taskNeedNewBodyStream = Callbacks(rawValue: 1 << 5)
        /// ``SessionDelegate/Overrides/taskDidSendBodyData``
        public static let taskDidSendBodyData = Callbacks(rawValue: 1 << 6)
        /// ``SessionDelegate/Overrides/taskDidFinishCollectingMetrics``
        public static let taskDidFinishCollectingMetrics = Callbacks(rawValue: 1 << 7)
        /// ``SessionDelegate/Overrides/taskDidComplete``
        public static let taskDidComplete = Callbacks(rawValue: 1 << 8)
        /// ``SessionDelegate/Overrides/dataTaskDidReceiveResponse``, in either form
        public static let dataTaskDidReceiveResponse = Callbacks(rawValue: 1 << 9)
        /// ``SessionDelegate/Overrides/dataTaskDidBecomeDownloadTask``
        public static let dataTaskDidBecomeDownloadTask = Callbacks(rawValue: 1 << 10)
        /// ``SessionDelegate/Overrides/dataTaskDidReceiveData``
        public static let dataTaskDidReceiveData = Callbacks(rawValue: 1 << 11)
        /// ``SessionDelegate/Overrides/dataTaskWillCacheResponse``, in either form
        public static let dataTaskWillCacheResponse = Callbacks(rawValue: 1 << 12)
        /// ``SessionDelegate/Overrides/downloadTaskDidFinishDownloading``
        public static let downloadTaskDidFinishDownloading = Callbacks(rawValue: 1 << 13)
        /// ``SessionDelegate/Overrides/downloadTaskDidWriteData``
        public static let downloadTaskDidWriteData = Callbacks(rawValue: 1 << 14)
        /// ``SessionDelegate/Overrides/downloadTaskDidResumeAtOffset``
        public static let downloadTaskDidResumeAtOffset = Callbacks(rawValue: 1 << 15)
        /// ``SessionDelegate/Overrides/downloadTaskDidRestart``
        public static let downloadTaskDidRestart = Callbacks(rawValue: 1 << 16)
        /// ``SessionDelegate/Overrides/downloadTaskDidReceiveAll``
        public static let downloadTaskDidReceiveAll = Callbacks(rawValue: 1 << 17)
        /// ``SessionDelegate/Overrides/downloadTaskWantsCheckpoint``
        public static let downloadTaskWantsCheckpoint = Callbacks(rawValue: 1 << 18)
        /// ``SessionDelegate/Overrides/streamTaskReadClosed``
        public static let streamTaskReadClosed = Callbacks(rawValue: 1 << 19)
        /// ``SessionDelegate/Overrides/streamTaskWriteClosed``
        public static let streamTaskWriteClosed = Callbacks(rawValue: 1 << 20)
        /// ``SessionDelegate/Overrides/streamTaskBetterRouteDiscovered``
        public static let streamTaskBetterRouteDiscovered = Callbacks(rawValue: 1 << 21)
        /// ``SessionDelegate/Overrides/streamTaskDidBecomeInputAndOutputStreams``
        public static let streamTaskDidBecomeInputAndOutputStreams = Callbacks(rawValue: 1 << 22)
        /// ``SessionDelegate/Overrides/downloadTaskDidDoubt``
        public static let downloadTaskDidDoubt = Callbacks(rawValue: 1 << 23)
        /// ``SessionDelegate/Overrides/sessionDidFindFault``
        public static let sessionDidFindFault = Callbacks(rawValue: 1 << 24)
    }
}
