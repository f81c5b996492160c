import ControlProtocol
import NIOCore
import TaskModel

/// A handler of a refused connection: it sends the reason in one line and closes the connection.
final class RefusalHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let error: RPCError

    init(_ error: RPCError) {
        self.error = error
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        // A line this short fits into an empty socket, so the client cannot delay the close.
        context.writeAndFlush(wrapOutboundOut(RequestProcessor.errorLine(error))).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}

extension RPCError {
    static let peerNotPermitted = RPCError(
        code: Number.notPermitted, message: "this user may not use this daemon",
        data: Detail(code: .permissionDenied))

    static let tooManyConnections = RPCError(
        code: Number.unavailable, message: "too many connections, and none of them idle", data: Detail(code: .quota))

    static let alreadySubscribed = RPCError.refused(.invalid, "this connection already has a subscription")

    static let tooManySubscriptions = RPCError(
        code: Number.unavailable, message: "too many subscriptions to events of this user",
        data: Detail(code: .quota))
}
