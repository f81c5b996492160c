/// One attempt of a session at one request.
public protocol SessionTask: AnyObject, Sendable {
    /// Unique within the process.
    var identifier: Int { get }
    var state: SessionTaskState { get }
    var originalRequest: TransferRequest { get }
    /// After redirects: what is being asked for now.
    var currentRequest: TransferRequest { get }
    var response: ResponseHead? { get }
    var progress: TransferProgress { get }
    /// Starts the task; once.
    func resume()
    /// Ends it; it completes with ``TransferError/Code/cancelled``.
    func cancel()
}

public enum SessionTaskState: Sendable, Equatable {
    case suspended, running, canceling, completed
}
