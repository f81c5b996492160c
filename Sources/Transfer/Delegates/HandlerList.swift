import Synchronization

/// A list of operations that start once their request is complete, in the order in which they were added. An operation
/// added later runs at once, after those still pending.
public final class HandlerList: Sendable {
    /// An operation with its context. A closure in a tuple or an optional would be wrapped anew each time it is moved.
    private struct Operation {
        let queue: HandlerQueue
        let run: @Sendable () -> Void
    }

    private struct State {
        var waiting: [Operation] = []
        var isOpen = false
        /// Whether a thread is running the pending operations.
        var isDraining = false
        /// The number of operations added and not yet finished.
        var unfinished = 0
        /// Called when no operation is left; several after further attempts of a complete request.
        var whenDone: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    /// Whether the operations wait for the completion of the request.
    public var isSuspended: Bool { state.withLock { !$0.isOpen } }

    /// Adds an operation.
    ///
    /// - Parameters:
    ///   - queue: the context of the operation.
    ///   - operation: starts after the operations added before it have started.
    public func addOperation(on queue: HandlerQueue = .shared, _ operation: @escaping @Sendable () -> Void) {
        add(on: queue, operation)
    }

    /// Makes operations added from now on wait again, since the request has another attempt.
    func suspend() { state.withLock { $0.isOpen = false } }

    func add(on queue: HandlerQueue, _ run: @escaping @Sendable () -> Void) {
        let drains = state.withLock { state in
            state.waiting.append(Operation(queue: queue, run: run))
            state.unfinished += 1
            return claim(&state)
        }
        if drains { drain(onShared: false) }
    }

    /// Starts the operations, since the request is complete.
    func open() { opening()() }

    /// Makes operations start from now on.
    ///
    /// - Parameter whenDone: called once, when all operations added so far have finished.
    /// - Returns: a closure that starts the pending operations. It must be called at once, without any lock.
    func opening(whenDone: (@Sendable () -> Void)? = nil) -> @Sendable () -> Void {
        let (drains, isDone) = state.withLock { state in
            state.isOpen = true
            if state.unfinished > 0, let whenDone { state.whenDone.append(whenDone) }
            return (claim(&state), state.unfinished == 0)
        }
        return { [self] in
            if drains { drain(onShared: false) }
            if isDone { whenDone?() }
        }
    }

    private func finished() {
        let whenDone = state.withLock { state -> [@Sendable () -> Void] in
            state.unfinished -= 1
            guard state.unfinished == 0 else { return [] }
            defer { state.whenDone = [] }
            return state.whenDone
        }
        for closure in whenDone { closure() }
    }

    private func claim(_ state: inout State) -> Bool {
        guard state.isOpen, !state.isDraining, !state.waiting.isEmpty else { return false }
        state.isDraining = true
        return true
    }

    /// Runs the pending operations, without holding the lock, since an operation may add another.
    private func drain(onShared: Bool) {
        while true {
            let next = state.withLock { state -> Operation? in
                guard state.isOpen, let next = state.waiting.first else {
                    state.isDraining = false
                    return nil
                }
                if case .shared = next.queue.place, !onShared { return next }
                state.waiting.removeFirst()
                return next
            }
            guard let next else { return }
            switch next.queue.place {
            case .inline:
                next.run()
                finished()
            case .dispatch:
                next.queue.run { [self] in
                    next.run()
                    finished()
                }
            case .shared:
                // The shared threads run all remaining operations, so that the order is kept.
                guard onShared else { return next.queue.run { [self] in drain(onShared: true) } }
                next.run()
                finished()
            }
        }
    }
}
