import Synchronization

/// An event of one of a session's requests; the session publishes all of them in one stream.
public enum SessionEvent: Sendable {
    /// The request was started or resumed.
    case didResume(Request)
    /// A suspension of the request was requested.
    case didSuspend(Request)
    /// A cancellation was requested. ``didComplete(_:_:)`` follows unless the request had already completed.
    case didCancel(Request)
    /// An attempt failed, and another one starts.
    case willRetry(Request, TransferError)
    /// The request completed; its completion handlers run next.
    case didComplete(Request, TransferError?)

    /// The request that the event concerns.
    public var request: Request {
        switch self {
        case .didResume(let request), .didSuspend(let request), .didCancel(let request), .willRetry(let request, _),
            .didComplete(let request, _):
            request
        }
    }
}

/// A publisher of a session's events to any number of listeners: `for await event in session.events { … }`.
///
/// The publisher costs nothing while there is no listener. A listener that is ``SessionEventStream/capacity`` events
/// behind loses the oldest.
public final class SessionEventStream: Sendable {
    /// The maximum number of events buffered for a slow listener.
    public static let capacity = 4096

    private struct State {
        var listeners: [Int: AsyncStream<SessionEvent>.Continuation] = [:]
        var last = 0
        var isFinished = false
    }

    private let state = Mutex(State())
    private let count = Atomic<Int>(0)

    init() {}

    func send(_ event: @autoclosure () -> SessionEvent) {
        guard count.load(ordering: .acquiring) > 0 else { return }
        let event = event()
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners { listener.yield(event) }
    }

    /// Returns a stream of the events from now on. It ends when the sequence is released or the session ends.
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

    /// Ends all streams; no event follows.
    func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}

extension SessionEventStream: AsyncSequence {
    public typealias Element = SessionEvent
    public typealias Failure = Never

    public func makeAsyncIterator() -> AsyncStream<SessionEvent>.Iterator { stream().makeAsyncIterator() }
}
