import Synchronization

/// Operations that start only once their request is complete, in the order in which they were added; one that comes
/// later runs at once, after those that are still to run.
final class HandlerList: Sendable {
    private struct State {
        var waiting: [(queue: HandlerQueue, run: @Sendable () -> Void)] = []
        var isOpen = false
        /// Somebody is at it.
        var isDraining = false
    }

    private let state = Mutex(State())

    func add(on queue: HandlerQueue, _ run: @escaping @Sendable () -> Void) {
        let drains = state.withLock { state in
            state.waiting.append((queue, run))
            return claim(&state)
        }
        if drains { drain(onShared: false) }
    }

    /// The request is complete.
    func open() {
        let drains = state.withLock { state in
            state.isOpen = true
            return claim(&state)
        }
        if drains { drain(onShared: false) }
    }

    private func claim(_ state: inout State) -> Bool {
        guard state.isOpen, !state.isDraining, !state.waiting.isEmpty else { return false }
        state.isDraining = true
        return true
    }

    /// Outside the lock, since an operation may add another.
    private func drain(onShared: Bool) {
        while true {
            let next = state.withLock { state -> (queue: HandlerQueue, run: @Sendable () -> Void)? in
                guard let next = state.waiting.first else {
                    state.isDraining = false
                    return nil
                }
                if case .shared = next.queue.place, !onShared { return next }
                state.waiting.removeFirst()
                return next
            }
            guard let next else { return }
            switch next.queue.place {
            case .inline: next.run()
            case .dispatch: next.queue.run(next.run)
            case .shared:
                // What is left is done there, so that the order holds.
                guard onShared else { return next.queue.run { [self] in drain(onShared: true) } }
                next.run()
            }
        }
    }
}
