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
    func answer(with response: CachedResponse) {
        guard let url else { return }
        beginAnew()
        storedBody = StoredBody(head: response.head, bytes: response.body)
        task.core.setResponse(response.head)
        guard handOver(response.head, url) else { return conclude(nil) }
        handStored()
    }

    /// Delivers the stored body until the client pauses or the body ends.
    func handStored() {
        while pauses.isEmpty, let stored = storedBody {
            guard case .receiving = phase, stored.position < stored.bytes.count else {
                // The body is complete, or the client does not want the rest.
                storedBody = nil
                task.core.add(ExchangeMetrics(stored: stored.head, to: request, begunAt: begunAt))
                return conclude(nil)
            }
            let end = min(stored.position + StoredBody.pieceSize, stored.bytes.count)
            let verdict = stored.bytes.withUnsafeBytes { bytes in
                client.receive(UnsafeRawBufferPointer(rebasing: bytes[stored.position..<end]), of: self)
            }
            switch verdict {
            case .accepted:
                bodyBegun = true
                storedBody?.position = end
            case .paused: return
            case .refused: return conclude(nil)
            }
        }
    }
}
