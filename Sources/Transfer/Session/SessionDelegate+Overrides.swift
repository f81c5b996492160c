extension SessionDelegate {
    /// Closures that replace the defaults, one for each callback. A callback with a result has a second form that takes
    /// a completion handler, which may be called later and from any thread. If both forms are set, the one with the
    /// completion handler is used.
    ///
    /// The closures run on the session's threads and must not block.
    public struct Overrides: Sendable {
        // MARK: Session

        /// The callback for the end of the session: it was invalidated and its last task is complete.
        public var sessionDidBecomeInvalid: (@Sendable (Session, TransferError?) -> Void)?
        /// The callback that decides on a challenge: the trust of every server, and credentials for a task without a
        /// request.
        public var sessionDidReceiveChallenge:
            (@Sendable (Session, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        /// Equivalent of ``sessionDidReceiveChallenge`` with a completion handler.
        public var sessionDidReceiveChallengeWithCompletion:
            (
                @Sendable (
                    Session, AuthenticationChallenge, @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
                ) -> Void
            )?
        /// The callback for the delivery of all events of a session, in place of the manager's
        /// `backgroundCompletionHandler`.
        public var sessionDidFinishEvents: (@Sendable (Session) -> Void)?

        /// The callback for an internal fault: the session's watchdog found a stalled transfer and woke it.
        /// `description` is a text for the log. ``Session/internalFaults`` counts the faults.
        public var sessionDidFindFault: (@Sendable (_ description: String) -> Void)?

        // MARK: Any task

        /// The callback that returns the next request, in place of `newRequest`; `nil` makes the redirect response the
        /// final one.
        public var taskWillPerformHTTPRedirection:
            (
                @Sendable (any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest)
                    -> TransferRequest?
            )?
        /// Equivalent of ``taskWillPerformHTTPRedirection`` with a completion handler.
        public var taskWillPerformHTTPRedirectionWithCompletion:
            (
                @Sendable (
                    any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest,
                    @escaping @Sendable (TransferRequest?) -> Void
                ) -> Void
            )?
        /// The callback that decides on a challenge, in place of the request's own delegate.
        public var taskDidReceiveChallenge:
            (@Sendable (any SessionTask, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        /// Equivalent of ``taskDidReceiveChallenge`` with a completion handler.
        public var taskDidReceiveChallengeWithCompletion:
            (
                @Sendable (
                    any SessionTask, AuthenticationChallenge,
                    @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
                ) -> Void
            )?
        /// The callback that returns a stream of the same length for a body that has to be sent again; with `nil` the
        /// body's own stream is created again.
        public var taskNeedNewBodyStream: (@Sendable (any SessionTask) -> BodyStream?)?
        /// Equivalent of ``taskNeedNewBodyStream`` with a completion handler.
        public var taskNeedNewBodyStreamWithCompletion:
            (@Sendable (any SessionTask, @escaping @Sendable (BodyStream?) -> Void) -> Void)?
        /// The callback for sent body bytes: bytes in this piece, bytes sent so far, and the length of the body, if
        /// known.
        public var taskDidSendBodyData:
            (@Sendable (any SessionTask, _ bytes: Int64, _ total: Int64, _ expected: Int64?) -> Void)?
        /// The callback for the metrics of a task's exchanges, called just before the task is complete.
        public var taskDidFinishCollectingMetrics: (@Sendable (any SessionTask, TransferMetrics) -> Void)?
        /// The callback for the end of a request, after validation and retries and before its handlers, with the task
        /// of its last attempt. Also called for each completed task without a request.
        public var taskDidComplete: (@Sendable (any SessionTask, _ error: TransferError?) -> Void)?

        // MARK: Data tasks

        /// The callback that decides what to do with a response, called before its body is received.
        public var dataTaskDidReceiveResponse: (@Sendable (DataTask, ResponseHead) -> ResponseDisposition)?
        /// Equivalent of ``dataTaskDidReceiveResponse`` with a completion handler.
        public var dataTaskDidReceiveResponseWithCompletion:
            (@Sendable (DataTask, ResponseHead, @escaping @Sendable (ResponseDisposition) -> Void) -> Void)?
        /// The callback after ``ResponseDisposition/becomeDownload(_:)``: the download task continues with the data
        /// task's response.
        public var dataTaskDidBecomeDownloadTask: (@Sendable (DataTask, DownloadTask) -> Void)?
        /// The callback for received bytes, in place of keeping them or passing them to the request's stream.
        public var dataTaskDidReceiveData: (@Sendable (DataTask, [UInt8]) -> Void)?
        /// The callback that decides what to store of a complete, cacheable response; `nil` from it stores nothing. The
        /// task completes after it.
        public var dataTaskWillCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)?
        /// Equivalent of ``dataTaskWillCacheResponse`` with a completion handler.
        public var dataTaskWillCacheResponseWithCompletion:
            (@Sendable (DataTask, CachedResponse, @escaping @Sendable (CachedResponse?) -> Void) -> Void)?

        // MARK: Download tasks

        /// The callback for a finished download: the file is complete, verified and renamed to its final name.
        public var downloadTaskDidFinishDownloading: (@Sendable (DownloadTask, PublishedFile) -> Void)?
        /// The callback for bytes written to the part file: bytes in this piece, bytes of the file so far, and its
        /// length, if known.
        public var downloadTaskDidWriteData:
            (@Sendable (DownloadTask, _ bytes: Int64, _ total: Int64, _ expected: Int64?) -> Void)?
        /// The callback for a resumed download: the number of bytes that are not fetched again, and the file's length,
        /// if known.
        public var downloadTaskDidResumeAtOffset:
            (@Sendable (DownloadTask, _ offset: Int64, _ expected: Int64?) -> Void)?
        /// The callback for a restart: the bytes received before are discarded.
        public var downloadTaskDidRestart: (@Sendable (DownloadTask, _ reason: String) -> Void)?
        /// The callback for a server's statement that may deserve attention: one that contradicts earlier information and
        /// is ignored, a web page under the name of an archive or image, or a content coding that cannot be undone.
        public var downloadTaskDidDoubt: (@Sendable (DownloadTask, _ reason: String) -> Void)?
        /// The callback for the receipt of the last byte. The file is about to be synced, verified and renamed.
        public var downloadTaskDidReceiveAll: (@Sendable (DownloadTask) -> Void)?
        /// The callback for a checkpoint: ``SessionConfiguration/checkpointInterval`` bytes were written since the last
        /// call.
        public var downloadTaskWantsCheckpoint: (@Sendable (DownloadTask) -> Void)?

        // MARK: Stream tasks

        /// The callback for the end of the read side, closed by the peer or locally. Received bytes may still be
        /// unread. Not called if the connection breaks, because the task is then complete.
        public var streamTaskReadClosed: (@Sendable (StreamTask) -> Void)?
        /// The callback for the FIN, which is sent after all written bytes. Not called if the connection breaks.
        public var streamTaskWriteClosed: (@Sendable (StreamTask) -> Void)?
        /// The callback for a better route: the kernel would now choose another source address for the peer. The check
        /// runs only when ``Session/routesDidChange()`` is called, and the callback is called once a task. For a
        /// connection through a proxy, the proxy is the peer.
        public var streamTaskBetterRouteDiscovered: (@Sendable (StreamTask) -> Void)?
        /// The callback for the conversion to streams: the task's pending operations are done, and the connection now
        /// belongs to the reader and the writer.
        public var streamTaskDidBecomeInputAndOutputStreams:
            (@Sendable (StreamTask, _ reader: StreamReader, _ writer: StreamWriter) -> Void)?

        /// Creates an empty set of closures.
        public init() {}

        /// The callbacks that have a closure.
        var callbacks: Callbacks {
            var set: Callbacks = []
            func record(_ callback: Callbacks, _ isSet: Bool) { if isSet { set.insert(callback) } }
            record(.sessionDidBecomeInvalid, sessionDidBecomeInvalid != nil)
            record(
                .sessionDidReceiveChallenge,
                sessionDidReceiveChallenge != nil || sessionDidReceiveChallengeWithCompletion != nil)
            record(.sessionDidFinishEvents, sessionDidFinishEvents != nil)
            record(.sessionDidFindFault, sessionDidFindFault != nil)
            record(
                .taskWillPerformHTTPRedirection,
                taskWillPerformHTTPRedirection != nil || taskWillPerformHTTPRedirectionWithCompletion != nil)
            record(
                .taskDidReceiveChallenge,
                taskDidReceiveChallenge != nil || taskDidReceiveChallengeWithCompletion != nil)
            record(.taskNeedNewBodyStream, taskNeedNewBodyStream != nil || taskNeedNewBodyStreamWithCompletion != nil)
            record(.taskDidSendBodyData, taskDidSendBodyData != nil)
            record(.taskDidFinishCollectingMetrics, taskDidFinishCollectingMetrics != nil)
            record(.taskDidComplete, taskDidComplete != nil)
            record(
                .dataTaskDidReceiveResponse,
                dataTaskDidReceiveResponse != nil || dataTaskDidReceiveResponseWithCompletion != nil)
            record(.dataTaskDidBecomeDownloadTask, dataTaskDidBecomeDownloadTask != nil)
            record(.dataTaskDidReceiveData, dataTaskDidReceiveData != nil)
            record(
                .dataTaskWillCacheResponse,
                dataTaskWillCacheResponse != nil || dataTaskWillCacheResponseWithCompletion != nil)
            record(.downloadTaskDidFinishDownloading, downloadTaskDidFinishDownloading != nil)
            record(.downloadTaskDidWriteData, downloadTaskDidWriteData != nil)
            record(.downloadTaskDidResumeAtOffset, downloadTaskDidResumeAtOffset != nil)
            record(.downloadTaskDidRestart, downloadTaskDidRestart != nil)
            record(.downloadTaskDidDoubt, downloadTaskDidDoubt != nil)
            record(.downloadTaskDidReceiveAll, downloadTaskDidReceiveAll != nil)
            record(.downloadTaskWantsCheckpoint, downloadTaskWantsCheckpoint != nil)
            record(.streamTaskReadClosed, streamTaskReadClosed != nil)
            record(.streamTaskWriteClosed, streamTaskWriteClosed != nil)
            record(.streamTaskBetterRouteDiscovered, streamTaskBetterRouteDiscovered != nil)
            record(.streamTaskDidBecomeInputAndOutputStreams, streamTaskDidBecomeInputAndOutputStreams != nil)
            return set
        }
    }

    /// A set of the callbacks that a session makes to its delegate. "In either form" means with or without a completion
    /// handler.
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
