import Curl

/// The body of a stored response during its delivery to a client.
struct StoredBody {
    let head: ResponseHead
    let bytes: [UInt8]
    var position = 0

    /// The number of bytes delivered at once.
    static let pieceSize = 64 * 1024
}

/// Delivery of a stored response. It is treated like a response from a server: the client can refuse it, pause it, or
/// transfer it to another client.
extension Transaction {
    /// Delivers the stored body until the client pauses or the body ends.
    func deliverStoredBody() {
        while machine.pauses.isEmpty, let body = stored {
            guard machine.isReceiving, body.position < body.bytes.count else {
                // The body is complete, or the client does not want the rest.
                stored = nil
                task.core.add(ExchangeMetrics(stored: body.head, to: request, begunAt: begunAt))
                perform(machine.storedBodyEnded())
                return
            }
            let end = min(body.position + StoredBody.pieceSize, body.bytes.count)
            let disposition = body.bytes.withUnsafeBytes { bytes in
                client.didReceiveBody(UnsafeRawBufferPointer(rebasing: bytes[body.position..<end]), of: self)
            }
            switch disposition {
            case .accepted:
                machine.storedBytesDelivered()
                stored?.position = end
            case .paused(let reason): machine.pause(reason)
            case .refused(let error):
                perform(error.map { machine.refuse($0) } ?? machine.storedBodyEnded())
                return
            }
        }
    }
}
