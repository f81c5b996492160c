import Synchronization

/// What a delegate says to what it was asked.
enum Decision: Sendable {
    /// What to ask next; `nil`: the redirecting answer itself is the final one.
    case redirect(TransferRequest?)
    case challenge(ChallengeDisposition, Credential?)
    case response(ResponseDisposition)
    case body(BodyStream?)
    case trust(Bool)
    /// What to store of an answer.
    case cache(CachedResponse?)
}

/// Takes one answer, from whichever thread and whenever it is given.
///
/// Whoever lets go of it without an answer gives the default: nothing waits for ever.
final class Reply: Sendable {
    private enum State {
        case open
        case given(Decision)
        /// The one who asked has gone on: the answer is sent after it.
        case away
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
        if state.withLock({ if case .away = $0 { true } else { false } }) { send(otherwise) }
    }

    /// The first answer counts.
    func give(_ decision: Decision) {
        let isAway = state.withLock { state in
            switch state {
            case .open:
                state = .given(decision)
                return false
            case .away:
                state = .done
                return true
            case .given, .done: return false
            }
        }
        if isAway { send(decision) }
    }

    /// - Returns: the answer where it is there; otherwise it will be sent.
    func takeAtOnce() -> Decision? {
        state.withLock { state in
            if case .given(let decision) = state {
                state = .done
                return decision
            }
            state = .away
            return nil
        }
    }
}
