import Synchronization

/// The delegate of one request whose response body is kept in memory or passed on as it is received.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
public class DataTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var data: [UInt8] = []
        var dataStream: (@Sendable ([UInt8]) -> Void)?
        var channel: BodyChannel?
        /// The result of the request, set once it is complete.
        var ending: (error: TransferError?, Void)?
        var willCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)?
    }

    private let state = Mutex(State())
    /// The progress of the response body, or of the sent body for an upload; shared by all attempts.
    public let progress: TransferProgress

    init(progress: TransferProgress) {
        self.progress = progress
        super.init()
    }

    /// The response body, once the request is complete; `nil` if it was passed to ``dataStream`` or to a sequence.
    public var data: [UInt8]? {
        state.withLock { $0.dataStream == nil && $0.channel == nil ? $0.data : nil }
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

    /// The number of body bytes received.
    public var bytesReceived: Int64 { progress.completedBytes }
    /// The length of the body in bytes, if the server sent it.
    public var expectedContentLength: Int64? { task?.response?.contentLength }

    /// Passes the body to a reader.
    ///
    /// - Parameter whenAbandoned: see ``BodyChannel/init(whenAbandoned:)``.
    /// - Returns: the channel; the same one each time.
    func openChannel(whenAbandoned: @escaping @Sendable () -> Bool) -> BodyChannel {
        let (channel, late) = state.withLock { state -> (BodyChannel, (data: [UInt8], error: TransferError?)?) in
            if let channel = state.channel { return (channel, nil) }
            let channel = BodyChannel(whenAbandoned: whenAbandoned)
            state.channel = channel
            return (channel, state.ending.map { (state.data, $0.error) })
        }
        if let late { end(channel, late.data, late.error) }
        return channel
    }

    /// Passes on the bytes that were kept because the attempt began before there was a reader, then ends the channel.
    private func end(_ channel: BodyChannel, _ kept: [UInt8], _ error: TransferError?) {
        if !kept.isEmpty { _ = channel.put(kept) }
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
        if let task = task as? DataTask { state.withLock { $0.data = task.data } }
        super.finish(task, error)
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
public final class UploadTaskDelegate: DataTaskDelegate, @unchecked Sendable {
    /// The progress of the sent body.
    public var uploadProgress: TransferProgress { progress }
}
