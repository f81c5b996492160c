/// The callbacks of a session's tasks, as their runs make them.
///
/// Every function with a completion calls it exactly once, at any time and on any thread.
protocol TaskCallbacks: AnyObject, Sendable {
    // MARK: Any task

    /// Returns the request before adapters; `nil` if the task belongs to no request.
    func originalRequest(of task: any SessionTask) -> TransferRequest?
    /// Returns whether the task's request can have another attempt; `nil` if the task belongs to no request.
    func mayRetry(_ task: any SessionTask) -> Bool?
    /// Observes the head of a response, redirects and challenges included.
    func task(_ task: any SessionTask, didReceive head: ResponseHead)
    /// Returns whether a closure decides on the task's redirects.
    func decidesRedirects(of task: any SessionTask) -> Bool
    func task(
        _ task: any SessionTask, willPerformHTTPRedirection response: ResponseHead, newRequest: TransferRequest,
        completion: @escaping @Sendable (TransferRequest?) -> Void)
    /// Whether a closure for all tasks decides on a server's certificate, in addition to the host's trust policy.
    var decidesTrust: Bool { get }
    /// Returns whether the task's own delegate decides on a server's certificate.
    func decidesOwnTrust(of task: any SessionTask) -> Bool
    func task(
        _ task: any SessionTask, didReceive challenge: AuthenticationChallenge,
        completion: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void)
    /// Returns whether a closure supplies the body's stream when the body is sent again.
    func decidesBodyStreams(of task: any SessionTask) -> Bool
    func task(_ task: any SessionTask, needNewBodyStream completion: @escaping @Sendable (BodyStream?) -> Void)
    func task(_ task: any SessionTask, didSendBodyData bytes: Int64, total: Int64, expected: Int64?)

    // MARK: Data and upload tasks

    /// Returns whether a closure decides on the task's response.
    func decidesResponses(of task: DataTask) -> Bool
    func dataTask(
        _ task: DataTask, didReceive response: ResponseHead,
        completion: @escaping @Sendable (ResponseDisposition) -> Void)
    /// Whether a closure receives the bytes of every response.
    var receivesData: Bool { get }
    /// Whether a subclass may see the bytes of every response before they are kept.
    var observesData: Bool { get }
    func dataTask(_ task: DataTask, didReceive bytes: [UInt8])
    /// Returns whether a closure decides on the storage of the task's response.
    func decidesCaching(of task: DataTask) -> Bool
    func dataTask(
        _ task: DataTask, willCache response: CachedResponse,
        completion: @escaping @Sendable (CachedResponse?) -> Void)
    /// Moves the request from the data task to the download task.
    func dataTask(_ task: DataTask, didBecome download: DownloadTask)
    /// Validates the head of a response before its body is passed on.
    ///
    /// - Returns: the reason why the body must not be passed to a reader or written to a file; `nil` if it may.
    func task(_ task: any SessionTask, validate head: ResponseHead, isEmpty: Bool) -> TransferError?
    /// Returns the remains of the request's earlier attempts on a file server; `nil` if the task belongs to no upload
    /// request.
    func uploadRemains(of task: any SessionTask) -> UploadRemains?

    // MARK: Download tasks

    /// Returns whether the first bytes of a download make a checkpoint due, whatever the session's interval.
    func wantsFirstCheckpoint(of task: DownloadTask) -> Bool
    func downloadTask(_ task: DownloadTask, didWriteData bytes: Int64, total: Int64, expected: Int64?)
    func downloadTask(_ task: DownloadTask, didResumeAtOffset offset: Int64, expected: Int64?)
    func downloadTask(_ task: DownloadTask, didRestartBecause reason: String)
    func downloadTask(_ task: DownloadTask, didDoubt reason: String)
    func downloadTask(didReceiveAll task: DownloadTask)
    func downloadTask(wantsCheckpoint task: DownloadTask)
    func downloadTask(_ task: DownloadTask, didFinishDownloading file: PublishedFile)

    // MARK: Stream tasks

    func streamTask(readClosedFor task: StreamTask)
    func streamTask(writeClosedFor task: StreamTask)
    func streamTask(betterRouteDiscoveredFor task: StreamTask)
    func streamTask(_ task: StreamTask, didBecome reader: StreamReader, _ writer: StreamWriter)
}
