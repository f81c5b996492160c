import Curl

/// The body of a stored answer on its way to a client.
struct StoredBody {
    let head: ResponseHead
    let bytes: [UInt8]
    var position = 0

    /// Bytes that are handed over at once.
    static let pieceSize = 64 * 1024
}

/// A stored answer is met as one that comes from a server: the client can refuse it, stand still, or give way to
/// another.
extension Transaction {
    func answer(with response: CachedResponse) {
        guard let url else { return }
        beginAnew()
        storedBody = StoredBody(head: response.head, bytes: response.body)
        task.core.setResponse(response.head)
        guard handOver(response.head, url) else { return conclude(nil) }
        handStored()
    }

    /// Goes on until the client stands still.
    func handStored() {
        while pauses.isEmpty, let stored = storedBody {
            guard case .receiving = phase, stored.position < stored.bytes.count else {
                // Nothing is left of it, or nothing more of it is wanted.
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
