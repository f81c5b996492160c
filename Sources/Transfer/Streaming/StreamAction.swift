import Curl

/// An action that ``StreamStateMachine`` wants performed. Its performer, ``StreamRun``, does nothing else.
enum StreamAction: Equatable {
    case none
    /// Connects to the server; ``StreamStateMachine/connected(_:)`` or ``StreamStateMachine/connectionEnded(_:)``
    /// follows.
    case connect
    /// Aborts the connection; ``StreamStateMachine/connectionEnded(_:)`` follows.
    case abort
    /// Evaluates the peer's certificates; ``StreamStateMachine/certificatesEvaluated(_:)`` follows.
    case evaluateCertificates
    /// Completes the call that started TLS, and performs what waited for it.
    case completeHandshake(Int)
    /// Reports once that the read side is closed.
    case reportReadClose
    /// Reports once that the system has a better route.
    case reportBetterRoute
    /// Performs the pending operations.
    case performOperations
    /// Starts a timer in the place of the present one; ``StreamStateMachine/timerFired(_:isAwaited:_:)`` follows.
    case startTimer(until: MonotonicTime)
    /// Ends the attempt.
    case end(TransferError?)
}
