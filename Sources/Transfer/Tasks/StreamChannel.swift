import Curl
import Synchronization

/// The connection between the event loop of a stream and its readers and writers. It accepts calls from any thread and
/// resumes each call exactly once, however the stream ends.
///
/// A request keeps one channel over its attempts. So calls made before the connection is established wait for the
/// attempt that establishes it.
final class StreamChannel: Sendable {
    typealias Outcome = StreamOperationQueue.Outcome

    /// The number of buffered unread bytes at which receiving pauses; one buffer of the loop may come on top.
    static let heldLimit = 256 * 1024
    /// The maximum number of bytes of one read. A read with a large minimum makes the buffer grow up to this size.
    static let longestRead = 16 << 20

    private struct State {
        var queue = StreamOperationQueue(heldLimit: StreamChannel.heldLimit)
        var waiters: [Int: CheckedContinuation<Outcome, Never>] = [:]
        var lastNumber = 0
        /// Whether the loop has been notified of new work.
        var isWakePending = false
        var wakeRun: (@Sendable () -> Void)?
        var breakOff: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var hasConnected: Bool { state.withLock { $0.queue.hasConnected } }
    var bytesReceived: Int64 { state.withLock { $0.queue.bytesReceived } }
    var bytesSent: Int64 { state.withLock { $0.queue.bytesSent } }
    var heldBytes: Int { state.withLock { $0.queue.heldBytes } }
    /// The number of calls that have not returned.
    var waiting: Int { state.withLock { $0.waiters.count } }
    var isSecuring: Bool { state.withLock { if case .securing = $0.queue.phase { true } else { false } } }

    /// Changes the queue, and resumes the completed calls after the lock is released.
    private func change<Value: Sendable>(_ work: (inout StreamOperationQueue) -> Value) -> Value {
        let (value, completed) = state.withLock { state in
            let value = work(&state.queue)
            return (value, Self.collect(&state))
        }
        for (waiter, outcome) in completed { waiter.resume(returning: outcome) }
        return value
    }

    private static func collect(_ state: inout State) -> [(CheckedContinuation<Outcome, Never>, Outcome)] {
        state.queue.removeOutcomes().compactMap { completed in
            state.waiters.removeValue(forKey: completed.id).map { ($0, completed.outcome) }
        }
    }

    // MARK: Readers and writers

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

    func pass(_ barrier: StreamOperationQueue.Barrier) async throws(TransferError) {
        _ = try await ask { $0.addBarrier($1, barrier) }
    }

    func closeRead(captured: Bool = false) {
        change { $0.closeRead(captured: captured) }
        wake()
    }

    func closeWrite(captured: Bool = false) {
        change { $0.closeWrite(captured: captured) }
        wake()
    }

    private func ask(_ add: @Sendable (inout StreamOperationQueue, Int) -> Void) async throws(TransferError)
        -> StreamPiece
    {
        guard !Task.isCancelled else { throw .cancelled }
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (completed, wantsLoop) = state.withLock { state in
                    state.waiters[number] = continuation
                    add(&state.queue, number)
                    return (Self.collect(&state), state.queue.wantsLoop)
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
        if change({ $0.withdraw(number, .cancelled) }) == .cannot {
            // The stream is unusable after half of a write, or after a handshake that is no longer wanted.
            state.withLock { $0.breakOff }?()
        } else {
            wake()
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

    // MARK: The loop's side

    /// Connects the channel to the task of a new attempt.
    ///
    /// - Parameters:
    ///   - wakeRun: makes the loop look for work soon.
    ///   - breakOff: ends the task as cancelled.
    func attach(wakeRun: @escaping @Sendable () -> Void, breakOff: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.queue.attach()
            state.isWakePending = false
            state.wakeRun = wakeRun
            state.breakOff = breakOff
        }
    }

    /// Disconnects the channel from a task that has ended. The stream may get another.
    func detach() {
        state.withLock { state in
            state.wakeRun = nil
            state.breakOff = nil
        }
    }

    /// Ends the stream, so that every waiting call returns. Only the first end has an effect.
    func end(_ error: TransferError?) { change { $0.ended(error) } }

    /// Called when the loop starts to look for work.
    ///
    /// - Returns: the deadline of the call that expires first; `nil` if there is none.
    func beginTurn(_ now: MonotonicTime) -> MonotonicTime? {
        state.withLock { state in
            state.isWakePending = false
            return state.queue.startTimeouts(at: now)
        }
    }

    func nextWork() -> StreamOperationQueue.Work? { change { $0.nextWork() } }
    func expire(at now: MonotonicTime) -> TransferError? { change { $0.expire(at: now) } }
    var isAwaited: Bool { state.withLock { $0.queue.isAwaited } }
    var isSuspended: Bool { state.withLock { $0.queue.isSuspended } }
    func suspend(_ now: MonotonicTime) { change { $0.suspend(now) } }
    func resume() { change { $0.resume() } }
    func connected() { change { $0.connected() } }
    func received(_ bytes: UnsafeRawBufferPointer) { change { $0.received(bytes) } }
    func wantsMore() -> Bool { change { $0.wantsMore() } }
    func peerClosed() { change { $0.peerClosed() } }
    func accepted(_ count: Int, of offered: Int) { change { $0.accepted(count, of: offered) } }
    func hasRoom() { change { $0.hasRoom() } }
    func sent(_ count: Int) { change { $0.sent(count) } }
    func secured(_ number: Int) { change { $0.secured(number) } }
    func refused(_ number: Int, _ error: TransferError) { change { $0.refused(number, error) } }
    func captured(_ number: Int) { change { $0.captured(number) } }
}
