import NIOCore
import TaskQueue

/// The task that reads the pages of a subscription, and the promises that it waits for. Belongs to the event loop.
final class EventPump {
    private var task: Task<Void, Never>?
    /// The promise of the page that is requested.
    private var turn: EventLoopPromise<Void>?
    /// The promise of the page that is about to be sent.
    private var sending: EventLoopPromise<Void>?

    /// Starts reading.
    ///
    /// - Parameters:
    ///   - room: the room for a page.
    ///   - send: sends an encoded page; the future fails when the connection is ending.
    ///   - ended: called on the task's thread when the stream has ended.
    func start(
        _ subscription: EventSubscription, room: EventRoom, on threads: HeavyThreads,
        send: @escaping @Sendable (ByteBuffer) -> EventLoopFuture<Void>, ended: @escaping @Sendable () -> Void
    ) {
        task = Task(executorPreference: threads) {
            for await page in subscription.pages(room) {
                if (try? await send(RequestProcessor.lines(page)).get()) == nil {
                    // The loop asks the stream once more, now as a cancelled task. Only then does the stream's producer
                    // learn of the end.
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            ended()
        }
    }

    func cancel() { task?.cancel() }

    // MARK: - Promises

    /// Returns a future that succeeds once a page may be read.
    ///
    /// - Parameter request: requests the page.
    func awaitTurn(on eventLoop: any EventLoop, _ request: () -> Void) -> EventLoopFuture<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        turn = promise
        request()
        return promise.futureResult
    }

    func grantTurn() {
        turn?.succeed()
        turn = nil
    }

    func failTurn() {
        turn?.fail(ChannelError.ioOnClosedChannel)
        turn = nil
    }

    /// Returns a future that succeeds once a page is written to the socket, and fails where `send` does not send it.
    ///
    /// - Parameter send: calls ``takeSending()`` if it sends the page.
    func awaitSending(on eventLoop: any EventLoop, _ send: () -> Void) -> EventLoopFuture<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        sending = promise
        send()
        takeSending()?.fail(ChannelError.ioOnClosedChannel)
        return promise.futureResult
    }

    func takeSending() -> EventLoopPromise<Void>? {
        defer { sending = nil }
        return sending
    }
}
