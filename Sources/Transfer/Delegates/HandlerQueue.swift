import Curl
import Dispatch

/// Where a request's handlers run.
///
/// Those of one request start in the order in which they were attached, and only once the request is complete.
public struct HandlerQueue: Sendable {
    enum Place: Sendable {
        case inline, shared
        case dispatch(DispatchQueue)
    }

    let place: Place

    /// A few threads that all requests share: one handler of a request at a time. A handler may block there, at the
    /// cost of other requests' handlers.
    public static let shared = HandlerQueue(place: .shared)
    /// The thread that completed the request, which must not be held up.
    public static let inline = HandlerQueue(place: .inline)
    /// The main dispatch queue: only in programs that run it (`dispatchMain`, or an asynchronous `main`).
    public static let main = HandlerQueue.dispatch(.main)

    /// A dispatch queue of the caller's.
    public static func dispatch(_ queue: DispatchQueue) -> HandlerQueue { HandlerQueue(place: .dispatch(queue)) }

    private static let threads = WorkerThreads(
        name: "dld-handler", limit: 8, stack: SystemThread.largeStack)

    func run(_ work: @escaping @Sendable () -> Void) {
        switch place {
        case .inline: work()
        case .shared: Self.threads.perform(work)
        case .dispatch(let queue): queue.async(execute: work)
        }
    }
}
