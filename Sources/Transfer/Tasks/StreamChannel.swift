import Curl
import Synchronization

/// Between the loop that a stream's connection lives on and whoever reads and writes: takes what is asked for from any
/// thread, and answers each call exactly once, however the stream ends.
///
/// A request keeps one over its attempts, so that what is asked for before the connection stands waits for the attempt
/// that brings it.
final class StreamChannel: Sendable {
    typealias Outcome = StreamAgenda.Outcome

    /// Unread bytes that are held before the connection has to wait; one buffer of the loop's may come on top.
    static let heldLimit = 256 * 1024
    /// Bytes of one read at most: so many are held where it asks for no less.
    static let longestRead = 16 << 20

    private struct State {
        var agenda = StreamAgenda(heldLimit: StreamChannel.heldLimit)
        var waiters: [Int: CheckedContinuation<Outcome, Never>] = [:]
        var lastNumber = 0
        /// The loop has been told that there is something to do.
        var isStirred = false
        var stir: (@Sendable () -> Void)?
        var breakOff: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var hasConnected: Bool { state.withLock { $0.agenda.hasConnected } }
    var bytesReceived: Int64 { state.withLock { $0.agenda.bytesReceived } }
    var bytesSent: Int64 { state.withLock { $0.agenda.bytesSent } }
    var heldBytes: Int { state.withLock { $0.agenda.heldBytes } }
    /// Calls without an answer.
    var waiting: Int { state.withLock { $0.waiters.count } }
    var isSecuring: Bool { state.withLock { if case .securing = $0.agenda.phase { true } else { false } } }

    /// Changes the agenda, and hands out what came of it after the lock is given back.
    private func change<Value: Sendable>(_ work: (inout StreamAgenda) -> Value) -> Value {
        let (value, answered) = state.withLock { state in
            let value = work(&state.agenda)
            return (value, Self.collect(&state))
        }
        for (waiter, outcome) in answered { waiter.resume(returning: outcome) }
        return value
    }

    private static func collect(_ state: inout State) -> [(CheckedContinuation<Outcome, Never>, Outcome)] {
        state.agenda.takeAnswers().compactMap { answer in
            state.waiters.removeValue(forKey: answer.id).map { ($0, answer.outcome) }
        }
    }

    // MARK: Whoever reads and writes

    func read(least: Int, most: Int, limit: Int64?, captured: Bool = false) async throws(TransferError) -> StreamPiece {
        guard least >= 0, most >= 1, least <= most, most <= Self.longestRead else {
            throw TransferError(
                .invalidRequest, "a read takes between 0 and \(Self.longestRead) bytes, the least first")
        }
        return try await ask { $0.addRead($1, least: least, most: most, limit: limit, captured: captured) }
    }

    func write(_ bytes: [UInt8], limit: Int64?, captured: Bool = false) async throws(TransferError) {
        _ = try await ask { $0.addWrite($1, bytes, limit: limit, captured: captured) }
    }

    func pass(_ barrier: StreamAgenda.Barrier) async throws(TransferError) {
        _ = try await ask { $0.addBarrier($1, barrier) }
    }

    func closeRead(captured: Bool = false) {
        change { $0.closeRead(captured: captured) }
        stir()
    }

    func closeWrite(captured: Bool = false) {
        change { $0.closeWrite(captured: captured) }
        stir()
    }

    private func ask(_ add: @Sendable (inout StreamAgenda, Int) -> Void) async throws(TransferError) -> StreamPiece {
        guard !Task.isCancelled else { throw .cancelled }
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (answered, wantsLoop) = state.withLock { state in
                    state.waiters[number] = continuation
                    add(&state.agenda, number)
                    return (Self.collect(&state), state.agenda.wantsLoop)
                }
                for (waiter, outcome) in answered { waiter.resume(returning: outcome) }
                if wantsLoop { stir() }
                // Cancelled before there was anything to take back.
                if Task.isCancelled { withdraw(number) }
            }
        } onCancel: {
            withdraw(number)
        }
        return try outcome.get()
    }

    private func withdraw(_ number: Int) {
        if change({ $0.withdraw(number, .cancelled) }) == .cannot {
            // Nothing can follow half of a write, or a handshake that nobody waits for.
            state.withLock { $0.breakOff }?()
        } else {
            stir()
        }
    }

    private func stir() {
        let stir = state.withLock { state -> (@Sendable () -> Void)? in
            guard !state.isStirred, let stir = state.stir else { return nil }
            state.isStirred = true
            return stir
        }
        stir?()
    }

    // MARK: The loop's side

    /// A task begins to work.
    ///
    /// - Parameters:
    ///   - stir: has the loop look for something to do, soon.
    ///   - breakOff: ends the task as cancelled.
    func attach(stir: @escaping @Sendable () -> Void, breakOff: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.agenda.attach()
            state.isStirred = false
            state.stir = stir
            state.breakOff = breakOff
        }
    }

    /// The task is at its end; the stream may have another.
    func detach() {
        state.withLock { state in
            state.stir = nil
            state.breakOff = nil
        }
    }

    /// Nothing more becomes of the stream: every call that waits is answered. The first end counts.
    func end(_ error: TransferError?) { change { $0.ended(error) } }

    /// The loop looks now.
    ///
    /// - Returns: when the time of the first call is up.
    func beginTurn(_ now: MonotonicTime) -> MonotonicTime? {
        state.withLock { state in
            state.isStirred = false
            return state.agenda.arm(now)
        }
    }

    func nextWork() -> StreamAgenda.Work? { change { $0.nextWork() } }
    func expire(at now: MonotonicTime) -> TransferError? { change { $0.expire(at: now) } }
    var isAwaited: Bool { state.withLock { $0.agenda.isAwaited } }
    var isSuspended: Bool { state.withLock { $0.agenda.isSuspended } }
    func suspend(_ now: MonotonicTime) { change { $0.suspend(now) } }
    func goOn() { change { $0.goOn() } }
    func connected() { change { $0.connected() } }
    func received(_ bytes: UnsafeRawBufferPointer) { change { $0.received(bytes) } }
    func wantsMore() -> Bool { change { $0.wantsMore() } }
    func peerClosed() { change { $0.peerClosed() } }
    func handed(_ count: Int, of offered: Int) { change { $0.handed(count, of: offered) } }
    func hasRoom() { change { $0.hasRoom() } }
    func sent(_ count: Int) { change { $0.sent(count) } }
    func secured(_ number: Int) { change { $0.secured(number) } }
    func refused(_ number: Int, _ error: TransferError) { change { $0.refused(number, error) } }
    func captured(_ number: Int) { change { $0.captured(number) } }
}
