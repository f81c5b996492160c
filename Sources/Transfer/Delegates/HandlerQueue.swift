import Curl
public import Dispatch

/// The execution context of a request's handlers.
///
/// The handlers of one request start in the order in which they were added, and only once the request is complete.
public struct HandlerQueue: Sendable {
    enum Place: Sendable {
        case inline, shared
        case dispatch(DispatchQueue)
    }

    let place: Place

    /// A pool of up to eight threads shared by all requests. It runs one handler of a request at a time. A handler may
    /// block, but then it delays other requests' handlers.
    public static let shared = HandlerQueue(place: .shared)
    /// The thread that completed the request. A handler must not block it.
    public static let inline = HandlerQueue(place: .inline)
    /// The main dispatch queue. Use it only in programs that run this queue (`dispatchMain`, or an asynchronous
    /// `main`).
    public static let main = HandlerQueue.dispatch(.main)

    /// Returns a context that runs handlers on a dispatch queue of the caller.
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
