import Curl
import Synchronization

/// What is to become of an answer whose head is there.
public enum ResponseDisposition: Sendable {
    /// The body is taken as it would be without a closure.
    case allow
    /// The task ends as cancelled.
    case cancel
    /// The body goes to a file: the task goes on as a ``DownloadTask``.
    case becomeDownload(DownloadTarget)
    /// As ``becomeDownload(_:)``, to a place that is decided by this very head. Resume data come of it only where the
    /// request was a `GET` without a body.
    case download(to: DownloadDestination)
}

/// Where the body of an answer goes.
enum BodySink: Sendable {
    /// Into memory, up to the session's limit.
    case collect
    /// To whoever wants each piece, and must not block.
    case hand(@Sendable ([UInt8]) -> Void)
    /// To whoever takes it at their own pace.
    case channel(BodyChannel)
}

/// Asks, and keeps the answer's body in memory or hands it over as it comes.
///
/// `@unchecked`, since a class with a subclass cannot be checked: every stored property is a `let` of a `Sendable` type.
public class DataTask: LoopTask, @unchecked Sendable {
    let core: TaskCore
    let session: Session
    let body: RequestBody
    let sink: BodySink
    private let collected = Mutex<[UInt8]>([])
    private let isHandedOut = Atomic<Bool>(false)

    init(
        _ request: TransferRequest, body: RequestBody, sink: BodySink, progress: TransferProgress, session: Session
    ) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.body = body
        self.sink = sink
    }

    /// The answer's body, once the task is complete; empty where it went elsewhere.
    public var data: [UInt8] { collected.withLock { $0 } }

    /// Bytes of the answer have gone to someone who cannot give them back.
    var hasHandedOut: Bool { isHandedOut.load(ordering: .acquiring) }

    func handOut() { isHandedOut.store(true, ordering: .releasing) }

    func setData(_ bytes: [UInt8]) { collected.withLock { $0 = bytes } }

    func makeRun(on loop: LoopCore) -> any LoopRun {
        RemoteScheme.makeRun(for: self, on: loop) ?? DataRun(task: self, core: loop)
    }
}

/// Asks with a body: what its ``TaskDelegate`` hears first is how that goes out.
///
/// `@unchecked` for the reason that ``DataTask`` gives.
public final class UploadTask: DataTask, @unchecked Sendable {}
