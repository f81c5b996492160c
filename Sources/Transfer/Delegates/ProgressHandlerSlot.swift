import Synchronization

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
