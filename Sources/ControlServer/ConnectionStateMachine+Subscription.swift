/// The pages of events for a subscriber.
extension ConnectionStateMachine {
    mutating func subscriptionEvent(_ event: ConnectionEvent) -> ConnectionAction {
        guard case .active(let page) = subscription else {
            if case .pageGranted(let ticket) = event { return .release(ticket) }
            return .none
        }
        switch (event, page) {
        case (.pageRequested, .none) where lifecycle == .open:
            subscription = .active(.requested)
            return .requestPage
        case (.pageGranted(let ticket), .requested):
            subscription = .active(.granted(ticket))
            return .grantPage
        case (.pageGranted(let ticket), _): return .release(ticket)
        case (.pageReturned, .granted(let ticket)):
            subscription = .active(.none)
            return .release(ticket)
        case (.pageRead(let lines), .granted(let ticket)) where lifecycle == .open:
            subscription = .active(.none)
            unread.began()
            return .sendEvents(lines, ticket)
        case (.pageRead(let lines), .none) where lifecycle == .open:
            unread.began()
            return .sendEvents(lines, nil)
        case (.pageRead, .granted(let ticket)):
            subscription = .active(.none)
            return .release(ticket)
        case (.subscriptionEnded, _):
            subscription = .none
            if isBusy { if lifecycle == .open { lifecycle = .draining } } else { end() }
            if case .granted(let ticket) = page { return .endSubscription(ticket) }
            return .endSubscription(nil)
        default: return .none
        }
    }
}
