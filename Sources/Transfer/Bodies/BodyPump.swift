import Synchronization

/// A bounded buffer between the producer of a request body and the event loop that sends it. The producer waits while
/// the buffer is full, and the loop waits while it is empty.
final class BodyPump: Sendable {
    /// The number of buffered bytes at which the producer has to wait.
    static let capacity = 256 * 1024

    private struct State {
        var chunks: [[UInt8]] = []
        /// The number of bytes of the first chunk that have been taken.
        var offset = 0
        var held = 0
        var isFinished = false
        var error: TransferError?
        var isStopped = false
        /// Whether the loop found the buffer empty and has to be notified of new bytes.
        var isAwaited = false
        var maker: CheckedContinuation<Bool, Never>?
    }

    private let state = Mutex(State())
    private let moreToSend: @Sendable () -> Void

    /// - Parameter moreToSend: called, on any thread, when there are bytes after ``take(into:)`` returned
    ///   ``Taking/later``.
    init(moreToSend: @escaping @Sendable () -> Void) {
        self.moreToSend = moreToSend
    }

    /// Appends a chunk and waits until there is room for another.
    ///
    /// - Returns: whether more chunks are wanted; `false` once the pump was stopped.
    func put(_ chunk: [UInt8]) async -> Bool {
        if chunk.isEmpty { return true }
        return await withCheckedContinuation { continuation in
            let (answer, tells) = state.withLock { state -> (Bool?, Bool) in
                if state.isStopped { return (false, false) }
                state.chunks.append(chunk)
                state.held += chunk.count
                let tells = state.isAwaited
                state.isAwaited = false
                guard state.held >= Self.capacity else { return (true, tells) }
                state.maker = continuation
                return (nil, tells)
            }
            if tells { moreToSend() }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    func finish(_ error: TransferError?) {
        let tells = state.withLock { state in
            state.isFinished = true
            state.error = error
            defer { state.isAwaited = false }
            return state.isAwaited
        }
        if tells { moreToSend() }
    }

    /// Stops the pump: drops the buffered bytes and makes the producer stop.
    func stop() {
        let maker = state.withLock { state in
            state.isStopped = true
            state.chunks = []
            defer { state.maker = nil }
            return state.maker
        }
        maker?.resume(returning: false)
    }

    enum Taking {
        /// The number of bytes taken; 0 at the end of the body.
        case bytes(Int)
        case later
        case failed(TransferError)
    }

    func read(into space: UnsafeMutableRawBufferPointer) -> Taking {
        let (taking, maker) = state.withLock { state -> (Taking, CheckedContinuation<Bool, Never>?) in
            var count = 0
            while count < space.count, let chunk = state.chunks.first {
                let part = min(space.count - count, chunk.count - state.offset)
                chunk.withUnsafeBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: space[count..<(count + part)])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[state.offset..<(state.offset + part)]))
                }
                count += part
                state.offset += part
                if state.offset == chunk.count {
                    state.chunks.removeFirst()
                    state.offset = 0
                }
            }
            state.held -= count
            if count == 0 {
                if let error = state.error { return (.failed(error), nil) }
                if state.isFinished { return (.bytes(0), nil) }
                state.isAwaited = true
                return (.later, nil)
            }
            guard state.held < Self.capacity / 2 else { return (.bytes(count), nil) }
            defer { state.maker = nil }
            return (.bytes(count), state.maker)
        }
        maker?.resume(returning: true)
        return taking
    }
}
