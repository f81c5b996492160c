import Curl
public import FoundationEssentials
import Synchronization

/// The decision on a response whose head was received.
public enum ResponseDisposition: Sendable {
    /// The body is received as it would be without a closure.
    case allow
    /// The task ends as cancelled.
    case cancel
    /// The body goes to a file: the task continues as a ``DownloadTask``.
    case becomeDownload(DownloadTarget)
    /// Equivalent of ``becomeDownload(_:)`` with a destination that is decided by this very head. Resume data are
    /// produced only if the request was a `GET` without a body.
    case download(to: DownloadDestination)
}

/// The destination of a response body.
enum BodySink: Sendable {
    /// Memory, up to the session's limit.
    case collect
    /// A closure that takes each piece and must not block.
    case hand(@Sendable ([UInt8]) -> Void)
    /// A channel whose reader takes the body at its own pace.
    case channel(BodyChannel)
}

/// A task that keeps the response body in memory or passes it on as it is received.
///
/// `@unchecked`, since the compiler cannot check a class with a subclass: every stored property is a `let` of a
/// `Sendable` type.
public class DataTask: LoopTask, @unchecked Sendable {
    let core: TaskCore
    let session: Session
    let body: RequestBody
    let sink: BodySink
    private let collected = Mutex(Data())
    private let isHandedOut = Atomic<Bool>(false)
    private let keepsPiece = Atomic<Bool>(false)

    init(
        _ request: TransferRequest, body: RequestBody, sink: BodySink, progress: TransferProgress,
        session: Session
    ) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.body = body
        self.sink = sink
    }

    /// The progress of the response body.
    public var responseProgress: TransferProgress { core.progress }

    /// The response body, once the task is complete; empty if it went elsewhere.
    public var data: Data { collected.withLock { $0 } }

    /// Whether the body is kept in memory, and not passed on as it is received.
    var isCollected: Bool { if case .collect = sink { true } else { false } }

    /// Whether bytes of the response have been passed to a consumer and cannot be taken back.
    var hasHandedOut: Bool { isHandedOut.load(ordering: .acquiring) }

    func handOut() { isHandedOut.store(true, ordering: .releasing) }

    /// Makes the run keep the piece of the body that the session's delegate is looking at.
    func keepPiece() { keepsPiece.store(true, ordering: .releasing) }

    /// Returns whether ``keepPiece()`` was called since the last call of this.
    func takesPiece() -> Bool { keepsPiece.exchange(false, ordering: .acquiringAndReleasing) }

    func setData(_ data: Data) { collected.withLock { $0 = data } }
}

/// A task that sends a body. ``SessionTask/progress`` counts the bytes of the body, ``responseProgress`` those of the
/// response.
///
/// `@unchecked` for the reason that ``DataTask`` gives.
public final class UploadTask: DataTask, @unchecked Sendable {
    private let receiving: TransferProgress

    init(
        _ request: TransferRequest, body: RequestBody, sink: BodySink, progress: TransferProgress,
        responseProgress: TransferProgress, session: Session
    ) {
        receiving = responseProgress
        super.init(request, body: body, sink: sink, progress: progress, session: session)
    }

    override public var responseProgress: TransferProgress { receiving }
}
