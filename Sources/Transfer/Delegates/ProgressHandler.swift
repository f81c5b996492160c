import Synchronization

/// A handler of a request's progress. It is called with one snapshot at a time, and with the final one before the
/// request's other handlers run.
final class ProgressHandler: Sendable {
    private struct State {
        var pending: TransferProgress.Snapshot?
        var last: TransferProgress.Snapshot?
        var isRunning = false
        var isFinal = false
        var whenDone: (@Sendable () -> Void)?
    }

    private let progress: TransferProgress
    private let queue: HandlerQueue
    private let handler: @Sendable (TransferProgress.Snapshot) -> Void
    private let state = Mutex(State())

    init(
        _ progress: TransferProgress, on queue: HandlerQueue,
        _ handler: @escaping @Sendable (TransferProgress.Snapshot) -> Void
    ) {
        self.progress = progress
        self.queue = queue
        self.handler = handler
    }

    /// Observes the progress of a request until it ends.
    ///
    /// - Parameter delegate: the delegate of the request, whose handlers wait for the last call.
    func start(before delegate: TaskDelegate) {
        guard delegate.precedingWork.add({ [self] in finish(whenDone: $0) }) else { return finish {} }
        Task {
            for await snapshot in progress {
                guard deliver(snapshot) else { return }
            }
        }
    }

    /// Ends the calls.
    func cancel() { state.withLock { $0.isFinal = true } }

    /// Delivers the final counts.
    ///
    /// - Parameter whenDone: called when the handler has returned for the last time.
    private func finish(whenDone: @escaping @Sendable () -> Void) {
        if !deliver(progress.snapshot, whenDone: whenDone) { whenDone() }
    }

    /// - Returns: `false` after the end of the calls.
    @discardableResult
    private func deliver(_ snapshot: TransferProgress.Snapshot, whenDone: (@Sendable () -> Void)? = nil) -> Bool {
        let starts = state.withLock { state -> Bool? in
            // The sequence may yield a snapshot that it read before the end.
            guard !state.isFinal else { return nil }
            state.pending = snapshot
            state.isFinal = whenDone != nil
            state.whenDone = whenDone
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if starts == true { queue.run { [self] in drain() } }
        return starts != nil
    }

    private func drain() {
        while true {
            let (snapshot, whenDone) = state.withLock {
                state -> (TransferProgress.Snapshot?, (@Sendable () -> Void)?) in
                if let pending = state.pending {
                    state.pending = nil
                    if pending != state.last {
                        state.last = pending
                        return (pending, nil)
                    }
                }
                state.isRunning = false
                defer { state.whenDone = nil }
                return (nil, state.whenDone)
            }
            guard let snapshot else {
                whenDone?()
                return
            }
            handler(snapshot)
        }
    }
}

/// A place for one handler of a progress; a new handler replaces the last one.
final class ProgressHandlerSlot: Sendable {
    typealias Handler = (closure: DataTaskDelegate.ProgressClosure, queue: HandlerQueue)

    private let current = Mutex<(running: ProgressHandler, value: Handler)?>(nil)

    var value: Handler? { current.withLock { $0?.value } }

    /// Replaces the handler by one for `progress`, whose last call comes before the handlers of the request of
    /// `delegate`.
    func set(_ value: Handler?, of progress: TransferProgress, before delegate: TaskDelegate) {
        let new = value.map { (running: ProgressHandler(progress, on: $0.queue, $0.closure), value: $0) }
        let old = current.withLock { current in
            defer { current = new }
            return current?.running
        }
        old?.cancel()
        new?.running.start(before: delegate)
    }
}
