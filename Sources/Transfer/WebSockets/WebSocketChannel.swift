import Curl
import Glibc
import HTTPTypes
import Synchronization

/// The connection between the event loop of a WebSocket and the calls of its request, over all its attempts. It accepts
/// calls from any thread and resumes each call exactly once.
final class WebSocketChannel: StreamLink {
    typealias Outcome = WebSocketStateMachine.Outcome

    /// The number of unread bytes of messages at which the server has to wait.
    static let heldLimit = 256 * 1024

    private struct State {
        var machine: WebSocketStateMachine
        var waiters: [Int: CheckedContinuation<Outcome, Never>] = [:]
        var lastNumber = 0
        /// Whether the loop has been notified of new work.
        var isWakePending = false
        var wakeRun: (@Sendable () -> Void)?
        var breakOff: (@Sendable () -> Void)?
        var cookies: ExchangeCookies?
    }

    private let state: Mutex<State>
    private let protocols: [String]

    init(protocols: [String], maximumMessageSize: Int) {
        self.protocols = protocols
        state = Mutex(
            State(
                machine: WebSocketStateMachine(
                    heldLimit: Self.heldLimit, maximumMessageSize: max(0, maximumMessageSize))))
    }

    var hasConnected: Bool { state.withLock { $0.machine.hasConnected } }
    var head: ResponseHead? { state.withLock { $0.machine.head } }
    var subprotocol: String? { state.withLock { $0.machine.subprotocol } }
    var closure: WebSocketClosure? { state.withLock { $0.machine.closure } }
    var heldBytes: Int { state.withLock { $0.machine.inbox.size } }
    /// The number of calls that have not returned.
    var waiting: Int { state.withLock { $0.waiters.count } }

    /// Changes the machine, and resumes the completed calls after the lock is released.
    private func change<Value: Sendable>(_ work: (inout WebSocketStateMachine) -> Value) -> Value {
        let (value, completed) = state.withLock { state in
            let value = work(&state.machine)
            return (value, Self.collect(&state))
        }
        for (waiter, outcome) in completed { waiter.resume(returning: outcome) }
        return value
    }

    private static func collect(_ state: inout State) -> [(CheckedContinuation<Outcome, Never>, Outcome)] {
        state.machine.removeOutcomes().compactMap { completed in
            state.waiters.removeValue(forKey: completed.id).map { ($0, completed.outcome) }
        }
    }

    // MARK: Calls

    func receive() async throws(TransferError) -> WebSocketMessage? { try await ask { $0.addReceive($1) } }

    func send(_ opcode: WebSocketOpcode, _ payload: [UInt8]) async throws(TransferError) {
        _ = try await ask { $0.addSend($1, opcode, payload) }
    }

    func ping() async throws(TransferError) { _ = try await ask { $0.addPing($1) } }

    func close(_ payload: [UInt8]) async throws(TransferError) { _ = try await ask { $0.addClose($1, payload) } }

    private func ask(
        _ add: @Sendable (inout WebSocketStateMachine, Int) -> Void
    ) async throws(TransferError) -> WebSocketMessage? {
        guard !Task.isCancelled else { throw .cancelled }
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (completed, wantsLoop) = state.withLock { state in
                    state.waiters[number] = continuation
                    add(&state.machine, number)
                    return (Self.collect(&state), state.machine.wantsLoop)
                }
                for (waiter, outcome) in completed { waiter.resume(returning: outcome) }
                if wantsLoop { wake() }
                // The task was cancelled before the call was registered.
                if Task.isCancelled { withdraw(number) }
            }
        } onCancel: {
            withdraw(number)
        }
        return try outcome.get()
    }

    private func withdraw(_ number: Int) {
        if change({ $0.withdraw(number) }) {
            wake()
        } else {
            // The connection is unusable after a part of a message.
            state.withLock { $0.breakOff }?()
        }
    }

    private func wake() {
        let wakeRun = state.withLock { state -> (@Sendable () -> Void)? in
            guard !state.isWakePending, let wakeRun = state.wakeRun else { return nil }
            state.isWakePending = true
            return wakeRun
        }
        wakeRun?()
    }

    /// Ends the WebSocket, so that every waiting call returns. Only the first end has an effect.
    func end(_ error: TransferError?) { change { $0.ended(error) } }

    // MARK: The loop's side

    func peer(
        of request: TransferRequest, _ configuration: SessionConfiguration
    ) throws(TransferError) -> StreamPeer {
        let url = try WebSocketURL(request.url)
        guard request.method == .get else {
            throw TransferError(.invalidRequest, "the method of a WebSocket's request is GET")
        }
        var request = request
        if request.credential == nil { request.credential = try url.credential() }
        let cookies = ExchangeCookies(of: request, at: url.web, configuration)
        let lines = SentFields.lines(
            of: request, configuration, engineFields: cookies?.fieldLine().map { [$0] } ?? [], isAuthorized: false)
        let upgrade = try WebSocketUpgrade(
            url, fields: SentFields.fields(lines), protocols: protocols,
            nonce: (0..<16).map { _ in UInt8.random(in: 0...255) })
        let stallTimeout = configuration.stallTimeout(of: request)
        let error = state.withLock { state -> TransferError? in
            if case .ended(let error) = state.machine.phase { return error ?? .webSocketClosed }
            state.cookies = cookies
            state.machine.upgrade = upgrade
            state.machine.clock.stallTimeout = stallTimeout
            return nil
        }
        if let error { throw error }
        return url.peer
    }

    func attach(wakeRun: @escaping @Sendable () -> Void, breakOff: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.machine.attach()
            state.isWakePending = false
            state.wakeRun = wakeRun
            state.breakOff = breakOff
        }
    }

    func detach() {
        state.withLock { state in
            state.wakeRun = nil
            state.breakOff = nil
        }
    }

    func beginTurn(_ now: MonotonicTime) -> MonotonicTime? {
        state.withLock { state in
            state.isWakePending = false
            return state.machine.beginTurn(now)
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        let head = change { machine -> ResponseHead? in
            let hadHead = machine.head != nil
            machine.received(bytes)
            return hadHead ? nil : machine.head
        }
        if let head { state.withLock({ $0.cookies })?.receive(head) }
    }

    func nextWork() -> StreamOperationQueue.Work? {
        change { $0.nextWork(mask: { UInt32.random(in: 0 ... .max) }) }
    }

    func conclusion(_ error: TransferError?) -> TransferError? { state.withLock { $0.machine.conclusion(error) } }
    var bytesReceived: Int64 { state.withLock { $0.machine.bytesReceived } }
    var bytesSent: Int64 { state.withLock { $0.machine.bytesSent } }
    var isAwaited: Bool { state.withLock { $0.machine.isAwaited } }
    func expire(at now: MonotonicTime) -> TransferError? { change { $0.expire(at: now) } }
    func suspend(_ now: MonotonicTime) { change { $0.suspend() } }
    func resume() { change { $0.resume() } }
    func connected() { change { $0.connected() } }
    func wantsMore() -> Bool { change { $0.wantsMore() } }
    func peerClosed() { change { $0.peerClosed() } }
    func accepted(_ count: Int, of offered: Int) { change { $0.accepted(count, of: offered) } }
    func hasRoom() { change { $0.hasRoom() } }
    func sent(_ count: Int) { change { $0.sent(count) } }
    func secured(_ number: Int) { change { $0.secured() } }
    func refused(_ number: Int, _ error: TransferError) { change { $0.fail(error) } }
    func captured(_ number: Int) {}
}
