import Synchronization

/// Receives what concerns one stream.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
public final class StreamTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var readClosed: (@Sendable (StreamTask) -> Void)?
        var writeClosed: (@Sendable (StreamTask) -> Void)?
        var betterRouteDiscovered: (@Sendable (StreamTask) -> Void)?
        var didBecomeInputAndOutputStreams: (@Sendable (StreamTask, StreamReader, StreamWriter) -> Void)?
    }

    private let state = Mutex(State())
    let channel: StreamChannel
    /// One value for all attempts: bytes that came.
    public let progress: TransferProgress

    init(channel: StreamChannel, progress: TransferProgress) {
        self.channel = channel
        self.progress = progress
        super.init()
    }

    // MARK: Closures, where the session's delegate has none; see SessionDelegate.Overrides

    /// As ``SessionDelegate/Overrides/streamTaskReadClosed``, for this stream alone.
    public var streamTaskReadClosed: (@Sendable (StreamTask) -> Void)? {
        get { state.withLock { $0.readClosed } }
        set { state.withLock { $0.readClosed = newValue } }
    }

    /// As ``SessionDelegate/Overrides/streamTaskWriteClosed``, for this stream alone.
    public var streamTaskWriteClosed: (@Sendable (StreamTask) -> Void)? {
        get { state.withLock { $0.writeClosed } }
        set { state.withLock { $0.writeClosed = newValue } }
    }

    /// As ``SessionDelegate/Overrides/streamTaskBetterRouteDiscovered``, for this stream alone.
    public var streamTaskBetterRouteDiscovered: (@Sendable (StreamTask) -> Void)? {
        get { state.withLock { $0.betterRouteDiscovered } }
        set { state.withLock { $0.betterRouteDiscovered = newValue } }
    }

    /// As ``SessionDelegate/Overrides/streamTaskDidBecomeInputAndOutputStreams``, for this stream alone.
    public var streamTaskDidBecomeInputAndOutputStreams:
        (@Sendable (StreamTask, _ reader: StreamReader, _ writer: StreamWriter) -> Void)?
    {
        get { state.withLock { $0.didBecomeInputAndOutputStreams } }
        set { state.withLock { $0.didBecomeInputAndOutputStreams = newValue } }
    }

    override func didEnd(_ error: TransferError?) {
        channel.end(error)
        super.didEnd(error)
    }
}
