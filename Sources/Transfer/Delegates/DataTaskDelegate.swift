import Synchronization

/// Receives what concerns one request whose answer is kept in memory, or handed on as it comes.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
public class DataTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var data: [UInt8] = []
        var dataStream: (@Sendable ([UInt8]) -> Void)?
        var channel: BodyChannel?
        /// The request is complete.
        var ending: (error: TransferError?, Void)?
        var willCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)?
    }

    private let state = Mutex(State())
    /// One value for all attempts.
    public let progress: TransferProgress

    init(progress: TransferProgress) {
        self.progress = progress
        super.init()
    }

    /// The answer's body, once the request is complete; `nil` where it went to ``dataStream`` or to a sequence.
    public var data: [UInt8]? {
        state.withLock { $0.dataStream == nil && $0.channel == nil ? $0.data : nil }
    }

    /// Takes each piece of the body as it comes, on a loop's thread, in the place of ``data``.
    public var dataStream: (@Sendable ([UInt8]) -> Void)? {
        get { state.withLock { $0.dataStream } }
        set { state.withLock { $0.dataStream = newValue } }
    }

    /// What to store of a whole answer that may be stored, where the session's delegate has no closure for that; `nil`
    /// from it: nothing.
    public var dataTaskWillCacheResponse: (@Sendable (DataTask, CachedResponse) -> CachedResponse?)? {
        get { state.withLock { $0.willCacheResponse } }
        set { state.withLock { $0.willCacheResponse = newValue } }
    }

    /// Bytes of the body that have come.
    public var bytesReceived: Int64 { progress.completedBytes }
    /// Bytes of the body, where the server says so.
    public var expectedContentLength: Int64? { task?.response?.contentLength }

    /// The body goes to the one who reads it.
    ///
    /// - Parameter whenAbandoned: as ``BodyChannel/init(whenAbandoned:)`` has it.
    /// - Returns: the same channel each time.
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

    /// What was kept, since nobody read when the attempt began, is there to be read all the same.
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

    /// Bytes have gone to someone who cannot give them back.
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

/// Receives what concerns one upload: how its body goes out, and the answer as ``DataTaskDelegate`` has it.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
public final class UploadTaskDelegate: DataTaskDelegate, @unchecked Sendable {
    /// Of the body that is sent.
    public var uploadProgress: TransferProgress { progress }
}
