import Synchronization

/// What becomes of a session's requests, as one stream with one subject for each event.
public enum SessionEvent: Sendable {
    /// The request was started.
    case didResume(Request)
    /// The request was told to stand still.
    case didSuspend(Request)
    /// The request was told to end; ``didComplete(_:_:)`` follows, unless it had ended already.
    case didCancel(Request)
    /// An attempt failed, and another begins.
    case willRetry(Request, TransferError)
    /// Its handlers are about to run.
    case didComplete(Request, TransferError?)

    /// Whom the event concerns.
    public var request: Request {
        switch self {
        case .didResume(let request), .didSuspend(let request), .didCancel(let request), .willRetry(let request, _),
            .didComplete(let request, _):
            request
        }
    }
}

/// Hands a session's events to whoever listens: `for await event in session.events { … }`.
///
/// Costs nothing while nobody does. A listener that falls ``EventMonitor/capacity`` events behind loses the oldest.
public final class EventMonitor: Sendable {
    /// Events that are kept for a listener that is slower than they come.
    public static let capacity = 4096

    private struct State {
        var listeners: [Int: AsyncStream<SessionEvent>.Continuation] = [:]
        var last = 0
        var isFinished = false
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    init() {}

    func tell(_ event: @autoclosure () -> SessionEvent) {
        guard count.load(ordering: .acquiring) > 0 else { return }
        let event = event()
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners { listener.yield(event) }
    }

    /// From this moment on, until the sequence is let go of or the session is at its end.
    public func stream() -> AsyncStream<SessionEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: SessionEvent.self, bufferingPolicy: .bufferingNewest(Self.capacity))
        let number = state.withLock { state -> Int? in
            if state.isFinished { return nil }
            state.last += 1
            state.listeners[state.last] = continuation
            count.store(state.listeners.count, ordering: .releasing)
            return state.last
        }
        if let number {
            continuation.onTermination = { [weak self] _ in self?.remove(number) }
        } else {
            continuation.finish()
        }
        return stream
    }

    private func remove(_ number: Int) {
        state.withLock { state in
            state.listeners[number] = nil
            count.store(state.listeners.count, ordering: .releasing)
        }
    }

    /// Nothing more happens.
    func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}

extension EventMonitor: AsyncSequence {
    public typealias Element = SessionEvent
    public typealias Failure = Never

    public func makeAsyncIterator() -> AsyncStream<SessionEvent>.Iterator { stream().makeAsyncIterator() }
}
