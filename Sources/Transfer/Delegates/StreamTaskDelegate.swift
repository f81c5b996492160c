import Synchronization

/// The delegate of one stream.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
open class StreamTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var readClosed: (@Sendable (StreamTask) -> Void)?
        var writeClosed: (@Sendable (StreamTask) -> Void)?
        var betterRouteDiscovered: (@Sendable (StreamTask) -> Void)?
        var didBecomeInputAndOutputStreams: (@Sendable (StreamTask, StreamReader, StreamWriter) -> Void)?
    }

    private let state = Mutex(State())
    let channel = StreamChannel()
    /// The progress of received bytes; shared by all attempts.
    public let progress = TransferProgress()

    /// Creates a delegate without a task.
    override public init() { super.init() }

    // MARK: Closures, where the session's delegate has none; see SessionDelegate.Overrides

    /// Equivalent of ``SessionDelegate/Overrides/streamTaskReadClosed`` for this stream only.
    public var streamTaskReadClosed: (@Sendable (StreamTask) -> Void)? {
        get { state.withLock { $0.readClosed } }
        set { state.withLock { $0.readClosed = newValue } }
    }

    /// Equivalent of ``SessionDelegate/Overrides/streamTaskWriteClosed`` for this stream only.
    public var streamTaskWriteClosed: (@Sendable (StreamTask) -> Void)? {
        get { state.withLock { $0.writeClosed } }
        set { state.withLock { $0.writeClosed = newValue } }
    }

    /// Equivalent of ``SessionDelegate/Overrides/streamTaskBetterRouteDiscovered`` for this stream only.
    public var streamTaskBetterRouteDiscovered: (@Sendable (StreamTask) -> Void)? {
        get { state.withLock { $0.betterRouteDiscovered } }
        set { state.withLock { $0.betterRouteDiscovered = newValue } }
    }

    /// Equivalent of ``SessionDelegate/Overrides/streamTaskDidBecomeInputAndOutputStreams`` for this stream only.
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
