import Curl

/// The state of a stream's connection, and the decisions about it: when it stalls, what its end means, and what is
/// reported.
///
/// A value without I/O, clock and closures. ``StreamRun`` reports each event, and performs the ``StreamAction`` that
/// comes back. ``StreamOperationQueue`` decides about the calls of readers and writers.
struct StreamStateMachine {
    enum Phase: Equatable {
        /// The names on the way to the server are resolved.
        case resolving
        case connecting
        case open
        /// The TLS handshake of the call with this number is running.
        case securing(Int)
        /// The handshake is complete, and the peer's certificates are evaluated.
        case judging(Int)
        case ended
    }

    /// The reports that are made once.
    struct Reports {
        var readClose = false
        var betterRoute = false
    }

    private(set) var phase = Phase.resolving
    /// The reason for which this machine aborts the connection. It takes precedence over libcurl's error.
    private(set) var failure: TransferError?
    private(set) var reports = Reports()
    private var clock: StreamStallClock

    /// - Parameters:
    ///   - stallTimeout: the session's time-out without a byte, in milliseconds; 0 for none.
    ///   - now: the current time.
    init(stallTimeout: Int64, now: MonotonicTime) {
        clock = StreamStallClock(timeout: stallTimeout, lastActivity: now)
    }

    var isEnded: Bool { phase == .ended }

    /// Whether a connection is established.
    var isConnected: Bool {
        switch phase {
        case .open, .securing, .judging: true
        case .resolving, .connecting, .ended: false
        }
    }

    // MARK: Connecting

    mutating func routeResolved() -> StreamAction {
        guard phase == .resolving else { return .none }
        phase = .connecting
        return .connect
    }

    mutating func connected(_ now: MonotonicTime) -> StreamAction {
        guard phase == .connecting else { return .none }
        phase = .open
        clock.lastActivity = now
        return .performOperations
    }

    // MARK: TLS

    /// The handshake of the call with this number has been started.
    mutating func handshakeBegan(_ number: Int) {
        if phase == .open { phase = .securing(number) }
    }

    mutating func handshakeEnded(_ now: MonotonicTime) -> StreamAction {
        clock.lastActivity = now
        guard case .securing(let number) = phase else { return .none }
        phase = .judging(number)
        return .evaluateCertificates
    }

    /// - Parameter error: the reason for a rejection; `nil` if the peer is trusted.
    mutating func certificatesEvaluated(_ error: TransferError?) -> StreamAction {
        guard case .judging(let number) = phase else { return .none }
        if let error { return failed(error) }
        phase = .open
        return .completeHandshake(number)
    }

    // MARK: Activity

    /// Bytes were received or sent, or the peer has closed its side.
    mutating func bytesMoved(_ now: MonotonicTime) { clock.lastActivity = now }

    mutating func readClosed() -> StreamAction {
        if isEnded || reports.readClose { return .none }
        reports.readClose = true
        return .reportReadClose
    }

    /// Whether a better route would be reported.
    var awaitsBetterRoute: Bool { isConnected && !reports.betterRoute }

    mutating func betterRouteFound() -> StreamAction {
        guard awaitsBetterRoute else { return .none }
        reports.betterRoute = true
        return .reportBetterRoute
    }

    // MARK: Time

    /// The task is suspended.
    mutating func suspended() { clock.awaitedSince = nil }

    /// All operations that can be performed are.
    ///
    /// - Parameters:
    ///   - due: the deadline of the call that expires first; `nil` if there is none.
    ///   - isAwaited: whether a call without a time limit of its own waits for the connection.
    mutating func operationsPerformed(
        due: MonotonicTime?, isAwaited: Bool, _ now: MonotonicTime
    ) -> StreamAction {
        if isEnded { return .none }
        return clock.timer(due: due, isAwaited: isAwaited && phase == .open, now).map { .startTimer(until: $0) }
            ?? .none
    }

    /// The timer has fired.
    ///
    /// - Parameter expired: the error of a write that was begun and whose time is up. The stream is unusable then.
    mutating func timerFired(_ expired: TransferError?, isAwaited: Bool, _ now: MonotonicTime) -> StreamAction {
        clock.timerFired()
        if isEnded { return .none }
        if let expired { return failed(expired) }
        if let stall = clock.stall(isAwaited: isAwaited && phase == .open, now), stall <= now {
            return failed(TransferError(.stalled, "no data for \(TransferError.duration(clock.timeout))"))
        }
        return .performOperations
    }

    // MARK: The end

    /// Ends the attempt. A connection is aborted first; only the first reason counts.
    mutating func failed(_ error: TransferError) -> StreamAction {
        switch phase {
        case .ended: return .none
        case .resolving:
            phase = .ended
            return .end(error)
        case .connecting, .open, .securing, .judging:
            failure = failure ?? error
            return .abort
        }
    }

    /// The connection has ended, or could not be opened.
    mutating func connectionEnded(_ error: TransferError?) -> StreamAction {
        if isEnded { return .none }
        phase = .ended
        return .end(failure ?? error)
    }
}

/// The time without a byte, as far as a call waits for one.
struct StreamStallClock {
    /// The time-out in milliseconds; 0 for none.
    let timeout: Int64
    var lastActivity: MonotonicTime
    /// The time since which calls without their own time limit have been waiting without interruption.
    var awaitedSince: MonotonicTime?
    /// The deadline of the running timer.
    private var running: MonotonicTime?

    init(timeout: Int64, lastActivity: MonotonicTime) {
        self.timeout = timeout
        self.lastActivity = lastActivity
    }

    /// Returns the time at which the connection counts as stalled; `nil` while none is awaited.
    mutating func stall(isAwaited: Bool, _ now: MonotonicTime) -> MonotonicTime? {
        guard timeout > 0, isAwaited else {
            awaitedSince = nil
            return nil
        }
        let since = awaitedSince ?? now
        awaitedSince = since
        return max(lastActivity, since).advanced(milliseconds: timeout)
    }

    /// Returns the deadline of a timer to start; `nil` if none is needed, or if the running one fires early enough. A
    /// timer that fires too early leads to another.
    mutating func timer(due: MonotonicTime?, isAwaited: Bool, _ now: MonotonicTime) -> MonotonicTime? {
        let stall = stall(isAwaited: isAwaited, now)
        guard let next = [due, stall].compactMap({ $0 }).min() else { return nil }
        if let running, running <= next { return nil }
        running = next
        return next
    }

    mutating func timerFired() { running = nil }
}

/// The invariants of a stream's connection.
///
/// 1. *An attempt ends once.* After the action that ends it, no event has an effect.
/// 2. *The first reason counts.* A connection that this machine aborts ends with the reason of the abort.
/// 3. *No byte counts as received under TLS before the peer's certificates are judged.* The handshake is complete for
///    its call only after that, and the connection does not stall meanwhile.
/// 4. *Each report is made once.*
extension StreamStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    var violation: String? {
        guard phase == .resolving || phase == .connecting else { return nil }
        if failure != nil, phase == .resolving { return "an aborted attempt goes on" }
        return reports.betterRoute ? "a better route is reported without a connection" : nil
    }
}

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
