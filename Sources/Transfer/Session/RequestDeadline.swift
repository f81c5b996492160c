import Synchronization

/// The time limit of a whole request, over all its attempts: one timer, which ends with the request.
final class RequestDeadline: Sendable {
    private enum State {
        case idle
        case running(Task<Void, Never>)
        case expired(TransferError)
    }

    private let state = Mutex(State.idle)

    /// Starts the timer, unless it runs.
    ///
    /// - Parameters:
    ///   - limit: the time in milliseconds; `nil` and 0 or less for no limit.
    ///   - expire: called at the end of the time, on any thread, unless ``stop()`` was called before.
    func start(_ limit: Int64?, expire: @escaping @Sendable () -> Void) {
        guard let limit, limit > 0 else { return }
        state.withLock { state in
            guard case .idle = state else { return }
            // Created within the lock, so that it is stored before it can end.
            state = .running(
                Task { [self] in
                    await CancellableSleep.sleep(limit)
                    let words = "the request took longer than its total time-out of \(TransferError.duration(limit))"
                    if end(with: TransferError(.timedOut, words)) { expire() }
                })
        }
    }

    private func end(with error: TransferError) -> Bool {
        state.withLock { state in
            guard case .running = state, !Task.isCancelled else { return false }
            state = .expired(error)
            return true
        }
    }

    /// Whether the request was ended because its time was over.
    var isExpired: Bool {
        state.withLock { if case .expired = $0 { true } else { false } }
    }

    /// Forgets that the time was over, since the request has another attempt after its end.
    func reset() {
        state.withLock { if case .expired = $0 { $0 = .idle } }
    }

    /// Stops the timer and returns the request's error: that of the time limit in place of the cancellation that ended
    /// the attempt.
    func stop(with error: TransferError?) -> TransferError? {
        let (timer, expiry) = state.withLock { state -> (Task<Void, Never>?, TransferError?) in
            switch state {
            case .idle: return (nil, nil)
            case .running(let timer):
                state = .idle
                return (timer, nil)
            case .expired(let expiry): return (nil, expiry)
            }
        }
        timer?.cancel()
        guard let error, error.code == .cancelled, var expiry else { return error }
        expiry.resumeData = error.resumeData
        return expiry
    }
}
