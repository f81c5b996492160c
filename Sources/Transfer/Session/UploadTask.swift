import Synchronization

/// How an upload task ended.
public enum UploadOutcome: Sendable {
    /// The server took the body and answered with success.
    case finished(ResponseHead)
    case failed(TransferError)
}

/// Sends a file as a request's body.
public final class UploadTask: SessionTask {
    let core: TaskCore
    let session: Session
    let source: UploadSource

    init(_ request: TransferRequest, source: UploadSource, progress: TransferProgress, session: Session) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.source = source
    }

    public var identifier: Int { core.identifier }
    public var state: SessionTaskState { core.state }
    public var originalRequest: TransferRequest { core.originalRequest }
    public var currentRequest: TransferRequest { core.currentRequest }
    public var response: ResponseHead? { core.response }
    public var progress: TransferProgress { core.progress }

    public func resume() {
        guard case .start = core.resume() else { return }
        session.start(self)
    }

    public func cancel() {
        switch core.cancel() {
        case .completeCancelled: session.complete(self, .failed(.cancelled))
        case .cancelOnLoop: session.cancel(identifier)
        case .start, .nothing: break
        }
    }
}
