import Curl
import Synchronization

/// A run that knows the peer of its connection.
protocol PeerRun: LoopRun {
    /// The address and port of the peer; `nil` where there is no connection.
    var peerAddress: String? { get }
}

extension LoopTask {
    /// The time in milliseconds for which an answer is awaited. A loop that writes to a disk that hangs gives none.
    private static var patience: Int64 { 1_000 }

    /// Returns the answer that `answer` gives on the loop's thread.
    ///
    /// - Returns: `nil` where the task has no loop, or the loop gives no answer in time.
    func ask<Answer: Sendable>(_ answer: @escaping @Sendable (LoopCore) -> Answer?) async -> Answer? {
        guard let loop = session.loop(for: self) else { return nil }
        return await withCheckedContinuation { (continuation: CheckedContinuation<Answer?, Never>) in
            let reply = OnceReply(continuation)
            let deadline = Task {
                await CancellableSleep.sleep(Self.patience)
                reply.send(nil)
            }
            let isPosted = loop.post { core in
                reply.send(answer(core))
                deadline.cancel()
            }
            if !isPosted { deadline.cancel() }
        }
    }
}

/// A continuation that is resumed by the first of several replies.
private final class OnceReply<Answer: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Answer?, Never>?>

    init(_ continuation: CheckedContinuation<Answer?, Never>) { self.continuation = Mutex(continuation) }

    func send(_ answer: Answer?) {
        let continuation = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        continuation?.resume(returning: answer)
    }
}
