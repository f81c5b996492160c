import Synchronization

/// A holder of one reply, which may be given at any time and from any thread.
///
/// If the last reference is released without a reply, the default is sent, so no caller waits for ever.
final class Reply: Sendable {
    private enum State {
        case open
        case given(Decision)
        /// The caller has continued without a reply; the reply is sent to it later.
        case awaited
        case done
    }

    private let state = Mutex(State.open)
    private let otherwise: Decision
    private let send: @Sendable (Decision) -> Void

    init(otherwise: Decision, send: @escaping @Sendable (Decision) -> Void) {
        self.otherwise = otherwise
        self.send = send
    }

    deinit {
        if state.withLock({ if case .awaited = $0 { true } else { false } }) { send(otherwise) }
    }

    /// Records the reply or sends it; only the first reply counts.
    func give(_ decision: Decision) {
        let isAwaited = state.withLock { state in
            switch state {
            case .open:
                state = .given(decision)
                return false
            case .awaited:
                state = .done
                return true
            case .given, .done: return false
            }
        }
        if isAwaited { send(decision) }
    }

    /// Takes the reply if it was given already.
    ///
    /// - Returns: the reply; `nil` if it has not been given, in which case it will be sent.
    func immediateDecision() -> Decision? {
        state.withLock { state in
            if case .given(let decision) = state {
                state = .done
                return decision
            }
            state = .awaited
            return nil
        }
    }
}

/// A delegate's reply to a question.
enum Decision: Sendable {
    /// The next request; `nil` makes the redirect response the final one.
    case redirect(TransferRequest?)
    case challenge(ChallengeDisposition, Credential?)
    case response(ResponseDisposition)
    /// The response to store; `nil` stores nothing.
    case cache(CachedResponse?)
}
