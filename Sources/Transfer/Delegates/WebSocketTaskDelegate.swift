/// The delegate of one WebSocket.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
final class WebSocketTaskDelegate: TaskDelegate, @unchecked Sendable {
    let channel: WebSocketChannel

    init(channel: WebSocketChannel) {
        self.channel = channel
        super.init()
    }

    override func didEnd(_ error: TransferError?) {
        channel.end(error)
        super.didEnd(error)
    }
}
