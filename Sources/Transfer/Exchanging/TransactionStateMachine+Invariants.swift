/// The invariants of a transaction.
///
/// 1. *A question belongs to its exchange.* The pending question is the latest, and no other state has one.
/// 2. *A request that is under way has a URL.*
/// 3. *A response from the cache sends nothing.* While it is delivered, no request waits for a head, and no other
///    request follows.
/// 4. *No more redirects are followed than are allowed.*
/// 5. *Every pause ends.* A reason for a pause ends by its owner's call of ``resume(_:)``, by the answer to the pending
///    question, or with the exchange.
extension TransactionStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    var violation: String? {
        if isUnderWay, url == nil, !isFailing { return "a request is under way to no URL" }
        if reasons.contains(.deciding) { return "a pause for a decision without a question" }
        switch state {
        case .idle, .receiving, .delivering, .failing, .ended: break
        case .requested:
            if exchange.isStored { return "a stored response waits for a head" }
            if redirects > configuration.maximumRedirects { return "too many redirects are followed" }
        case .deciding(let pending, _): return violation(of: pending)
        case .discarding(let continuation):
            guard case .send = continuation else { return nil }
            if exchange.isStored { return "a request follows a stored response" }
            if redirects > configuration.maximumRedirects { return "too many redirects are followed" }
        }
        return nil
    }

    private var isFailing: Bool { if case .failing = state { true } else { false } }

    private func violation(of pending: PendingQuestion) -> String? {
        if pending.number != questions { return "a question is pending that is not the latest" }
        switch pending.question {
        case .redirect, .challenge, .trust:
            return exchange.isStored ? "a stored response leads to another exchange" : nil
        case .response: return nil
        }
    }
}
