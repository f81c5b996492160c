extension SessionDelegate {
    /// Closures in the place of the defaults, one for each callback; where an answer is wanted, a second form takes a
    /// completion, which may be called later and from any thread. If both are set, the one with the completion counts.
    ///
    /// They run on the session's threads and must not block.
    public struct Overrides: Sendable {
        // MARK: Session

        /// The session is at its end: invalidated, and its last task complete.
        public var sessionDidBecomeInvalid: (@Sendable (Session, TransferError?) -> Void)?
        public var sessionDidReceiveChallenge:
            (@Sendable (Session, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        public var sessionDidReceiveChallengeWithCompletion:
            (
                @Sendable (
                    Session, AuthenticationChallenge, @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
                ) -> Void
            )?
        /// All events of a session have been delivered: in the place of the manager's `backgroundCompletionHandler`.
        public var sessionDidFinishEvents: (@Sendable (Session) -> Void)?

        // MARK: Any task

        /// What to ask next in the place of `newRequest`; `nil`: the redirecting answer is the final one.
        public var taskWillPerformHTTPRedirection:
            (
                @Sendable (any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest)
                    -> TransferRequest?
            )?
        public var taskWillPerformHTTPRedirectionWithCompletion:
            (
                @Sendable (
                    any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest,
                    @escaping @Sendable (TransferRequest?) -> Void
                ) -> Void
            )?
        public var taskDidReceiveChallenge:
            (@Sendable (any SessionTask, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        public var taskDidReceiveChallengeWithCompletion:
            (
                @Sendable (
                    any SessionTask, AuthenticationChallenge,
                    @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
                ) -> Void
            )?
        /// A stream of the same length for a body that has to be sent again; `nil`: the body's own is made anew.
        public var taskNeedNewBodyStream: (@Sendable (any SessionTask) -> BodyStream?)?
        public var taskNeedNewBodyStreamWithCompletion:
            (@Sendable (any SessionTask, @escaping @Sendable (BodyStream?) -> Void) -> Void)?
        public var taskDidSendBodyData:
            (@Sendable (any SessionTask, _ bytes: Int64, _ total: Int64, _ expected: Int64?) -> Void)?
        public var taskDidFinishCollectingMetrics: (@Sendable (any SessionTask, TransferMetrics) -> Void)?
        /// In the place of validation and retry: the request is complete with `error`, and its handlers follow.
        public var taskDidComplete: (@Sendable (any SessionTask, _ error: TransferError?) -> Void)?

        // MARK: Data tasks

        public var dataTaskDidReceiveResponse: (@Sendable (DataTask, ResponseHead) -> ResponseDisposition)?
        public var dataTaskDidReceiveResponseWithCompletion:
            (@Sendable (DataTask, ResponseHead, @escaping @Sendable (ResponseDisposition) -> Void) -> Void)?
        public var dataTaskDidBecomeDownloadTask: (@Sendable (DataTask, DownloadTask) -> Void)?
        /// In the place of keeping the bytes, or handing them to the request's stream.
        public var dataTaskDidReceiveData: (@Sendable (DataTask, [UInt8]) -> Void)?
        /// What to store of a whole answer that may be stored; `nil`: nothing. The task is complete after that.
        public var dataTaskWillCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)?
        public var dataTaskWillCacheResponseWithCompletion:
            (@Sendable (DataTask, CachedResponse, @escaping @Sendable (CachedResponse?) -> Void) -> Void)?

        // MARK: Download tasks

        public var downloadTaskDidFinishDownloading: (@Sendable (DownloadTask, PublishedFile) -> Void)?
        public var downloadTaskDidWriteData:
            (@Sendable (DownloadTask, _ bytes: Int64, _ total: Int64, _ expected: Int64?) -> Void)?
        public var downloadTaskDidResumeAtOffset:
            (@Sendable (DownloadTask, _ offset: Int64, _ expected: Int64?) -> Void)?
        /// Bytes that were there no longer count.
        public var downloadTaskDidRestart: (@Sendable (DownloadTask, _ reason: String) -> Void)?
        /// Every byte is here; the file is about to be synced, verified and named.
        public var downloadTaskDidReceiveAll: (@Sendable (DownloadTask) -> Void)?
        public var downloadTaskWantsCheckpoint: (@Sendable (DownloadTask) -> Void)?

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
            note(.downloadTaskDidReceiveAll, downloadTaskDidReceiveAll != nil)
            note(.downloadTaskWantsCheckpoint, downloadTaskWantsCheckpoint != nil)
            return set
        }
    }

    /// What a session tells its delegate.
    public struct Callbacks: OptionSet, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let sessionDidBecomeInvalid = Callbacks(rawValue: 1 << 0)
        public static let sessionDidReceiveChallenge = Callbacks(rawValue: 1 << 1)
        public static let sessionDidFinishEvents = Callbacks(rawValue: 1 << 2)
        public static let taskWillPerformHTTPRedirection = Callbacks(rawValue: 1 << 3)
        public static let taskDidReceiveChallenge = Callbacks(rawValue: 1 << 4)
        public static let taskNeedNewBodyStream = Callbacks(rawValue: 1 << 5)
        public static let taskDidSendBodyData = Callbacks(rawValue: 1 << 6)
        public static let taskDidFinishCollectingMetrics = Callbacks(rawValue: 1 << 7)
        public static let taskDidComplete = Callbacks(rawValue: 1 << 8)
        public static let dataTaskDidReceiveResponse = Callbacks(rawValue: 1 << 9)
        public static let dataTaskDidBecomeDownloadTask = Callbacks(rawValue: 1 << 10)
        public static let dataTaskDidReceiveData = Callbacks(rawValue: 1 << 11)
        public static let dataTaskWillCacheResponse = Callbacks(rawValue: 1 << 12)
        public static let downloadTaskDidFinishDownloading = Callbacks(rawValue: 1 << 13)
        public static let downloadTaskDidWriteData = Callbacks(rawValue: 1 << 14)
        public static let downloadTaskDidResumeAtOffset = Callbacks(rawValue: 1 << 15)
        public static let downloadTaskDidRestart = Callbacks(rawValue: 1 << 16)
        public static let downloadTaskDidReceiveAll = Callbacks(rawValue: 1 << 17)
        public static let downloadTaskWantsCheckpoint = Callbacks(rawValue: 1 << 18)
        public static let streamTaskReadClosed = Callbacks(rawValue: 1 << 19)
        public static let streamTaskWriteClosed = Callbacks(rawValue: 1 << 20)
        public static let streamTaskBetterRouteDiscovered = Callbacks(rawValue: 1 << 21)
        public static let streamTaskDidBecomeStreams = Callbacks(rawValue: 1 << 22)
    }
}
