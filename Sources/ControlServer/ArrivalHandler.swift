import Glibc
import NIOCore
import NIOPosix

/// A handler that serves the clients accepted by the ``ClientFront``. A pair of sockets notifies it, which the event
/// loop reads in turn with its other work. A task executed on the event loop would run before that work and delay it
/// for as long as clients arrive.
final class ArrivalHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// The handler, and a function that notifies it of an arrival from any thread.
    typealias Announced = (handler: NIOLoopBound<ArrivalHandler>, notify: @Sendable () -> Void)

    private let serve: (ClientFront.Arrival) -> Void
    private let notify: () -> Void
    private var front: ClientFront?

    private init(serve: @escaping (ClientFront.Arrival) -> Void, notify: @escaping () -> Void) {
        self.serve = serve
        self.notify = notify
    }

    /// - Parameter serve: called on the event loop for each arrival.
    /// - Throws: an error of the system or of the event loop.
    static func make(
        on eventLoop: any EventLoop, serve: @escaping @Sendable (ClientFront.Arrival) -> Void
    ) async throws -> Announced {
        guard let (output, end) = SocketPair.make() else { throw SystemFailure(errno) }
        let input = FileDescriptor(end)
        let notify: @Sendable () -> Void = {
            var byte: UInt8 = 0
            // Fails if enough bytes already wait in the socket, or if the handler no longer reads it.
            _ = send(input.raw, &byte, 1, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
        let handler = try await eventLoop.submit {
            NIOLoopBound(ArrivalHandler(serve: serve, notify: notify), eventLoop: eventLoop)
        }.get()
        do {
            _ = try await NIOPipeBootstrap(group: eventLoop)
                .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 16))
                .channelOption(.maxMessagesPerRead, value: 1)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(handler.value)
                    }
                }
                .takingOwnershipOfDescriptor(input: output).get()
        } catch {
            _ = close(output)  // the channel does not read it
            throw error
        }
        return (handler, notify)
    }

    /// Starts serving the arrivals at `front`, including those that already wait.
    func serveArrivals(at front: ClientFront) {
        self.front = front
        serveArrivals()
    }

    /// Serves every client that waits.
    func serveAllArrivals() {
        while let front, case (let taken, let isEmpty) = front.dequeueArrivals() {
            taken.forEach(serve)
            if isEmpty { return }
        }
    }

    private func serveArrivals() {
        guard let (taken, isEmpty) = front?.dequeueArrivals() else { return }
        taken.forEach(serve)
        if !isEmpty { notify() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { serveArrivals() }
}
