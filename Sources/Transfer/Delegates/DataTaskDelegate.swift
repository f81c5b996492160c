public import FoundationEssentials
import Synchronization

/// The delegate of one request whose response body is kept in memory or passed on as it is received.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
open class DataTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var data = Data()
        var dataStream: (@Sendable ([UInt8]) -> Void)?
        var channel: BodyChannel?
        /// The result of the request, set once it is complete.
        var ending: (error: TransferError?, Void)?
        var willCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)?
    }

    private let state = Mutex(State())
    private let progressSlot = ProgressHandlerSlot()
    /// The progress of the response body; shared by all attempts.
    public let progress = TransferProgress()

    /// A closure that takes the counts of a progress.
    public typealias ProgressClosure = @Sendable (TransferProgress.Snapshot) -> Void

    /// Creates a delegate without a task.
    override public init() { super.init() }

    /// The response body, once the request is complete; `nil` if it was passed to ``dataStream`` or to a sequence.
    override open var data: Data? {
        state.withLock { $0.dataStream == nil && $0.channel == nil ? $0.data : nil }
    }

    /// The handler of ``progress`` and its context; a new one replaces the last one. It is called as that of
    /// ``Request/onProgress(queue:_:)`` is.
    public var progressHandler: (closure: ProgressClosure, queue: HandlerQueue)? {
        get { progressSlot.value }
        set { progressSlot.set(newValue, of: progress, before: self) }
    }

    /// The callback that takes each piece of the body as it is received, in place of ``data``. Called on an event
    /// loop's thread.
    public var dataStream: (@Sendable ([UInt8]) -> Void)? {
        get { state.withLock { $0.dataStream } }
        set { state.withLock { $0.dataStream = newValue } }
    }

    /// The callback that decides what to store of a complete, cacheable response; `nil` from it stores nothing. Used if
    /// the session's delegate has no closure for this.
    public var dataTaskWillCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)? {
        get { state.withLock { $0.willCacheResponse } }
        set { state.withLock { $0.willCacheResponse = newValue } }
    }

    /// The number of bytes of the response body received.
    public var bytesReceived: Int64 { progress.completedBytes }
    /// The length of the body in bytes, if the server sent it.
    public var expectedContentLength: Int64? { task?.response?.contentLength }

    /// Passes the body to a reader.
    ///
    /// - Parameter whenAbandoned: see ``BodyChannel/init(whenAbandoned:)``.
    /// - Returns: the channel; the same one each time.
    func openChannel(whenAbandoned: @escaping @Sendable () -> Bool) -> BodyChannel {
        let (channel, late) = state.withLock { state -> (BodyChannel, (data: Data, error: TransferError?)?) in
            if let channel = state.channel { return (channel, nil) }
            let channel = BodyChannel(whenAbandoned: whenAbandoned)
            state.channel = channel
            return (channel, state.ending.map { (state.data, $0.error) })
        }
        if let late { end(channel, late.data, late.error) }
        return channel
    }

    /// Passes on the bytes that were kept because the attempt began before there was a reader, then ends the channel.
    private func end(_ channel: BodyChannel, _ kept: Data, _ error: TransferError?) {
        if !kept.isEmpty { _ = channel.put(Array(kept)) }
        channel.finish(error)
    }

    var sink: BodySink {
        state.withLock { state in
            if let channel = state.channel { return .channel(channel) }
            if let stream = state.dataStream { return .hand(stream) }
            return .collect
        }
    }

    /// Whether bytes have been passed to a consumer and cannot be taken back.
    var hasHandedOut: Bool {
        switch sink {
        case .collect: false
        case .hand, .channel: (task as? DataTask)?.hasHandedOut ?? false
        }
    }

    override func finish(_ task: any SessionTask, _ error: TransferError?) {
        if let task = task as? DataTask {
            let data = task.data
            state.withLock { $0.data = data }
        }
        super.finish(task, error)
    }

    override func reopen() -> Bool {
        guard super.reopen() else { return false }
        state.withLock { state in
            state.ending = nil
            state.data = Data()
            // Its reader has the end of the first body.
            state.channel = nil
        }
        return true
    }

    override func didEnd(_ error: TransferError?) {
        let (channel, data) = state.withLock { state in
            state.ending = (error, ())
            return (state.channel, state.data)
        }
        if let channel { end(channel, data, error) }
        super.didEnd(error)
    }
}

/// The delegate of one upload. It observes the sending of the body, and handles the response as ``DataTaskDelegate``
/// does.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
open class UploadTaskDelegate: DataTaskDelegate, @unchecked Sendable {
    private let sending = Mutex(TransferProgress())
    private let progressSlot = ProgressHandlerSlot()

    /// Creates a delegate without a task.
    override public init() { super.init() }

    /// The progress of the sent body; shared by all attempts.
    public var uploadProgress: TransferProgress { sending.withLock { $0 } }

    func setUploadProgress(_ progress: TransferProgress) { sending.withLock { $0 = progress } }

    /// The handler of ``uploadProgress`` and its context; a new one replaces the last one. It is called as that of
    /// ``UploadRequest/onUploadProgress(queue:_:)`` is.
    public var uploadProgressHandler: (closure: ProgressClosure, queue: HandlerQueue)? {
        get { progressSlot.value }
        set { progressSlot.set(newValue, of: uploadProgress, before: self) }
    }
}
