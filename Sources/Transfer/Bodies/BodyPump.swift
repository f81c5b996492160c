import Synchronization

/// Between whoever makes a body's bytes and the loop that sends them: holds a little, and makes either wait for the
/// other.
final class BodyPump: Sendable {
    /// Bytes that are held before the maker has to wait.
    static let capacity = 256 * 1024

    private struct State {
        var chunks: [[UInt8]] = []
        /// Of the first chunk: what has gone.
        var offset = 0
        var held = 0
        var isFinished = false
        var error: TransferError?
        var isStopped = false
        /// The loop found nothing, and is to be told of more.
        var isAwaited = false
        var maker: CheckedContinuation<Bool, Never>?
    }

    private let state = Mutex(State())
    private let moreToSend: @Sendable () -> Void

    /// - Parameter moreToSend: called, on any thread, when there is something after ``take(into:)`` said ``Taking/later``.
    init(moreToSend: @escaping @Sendable () -> Void) {
        self.moreToSend = moreToSend
    }

    /// - Returns: whether anyone still wants more, once there is room.
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

    /// Nobody takes anything any more.
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
        /// So many bytes; 0: that was all.
        case bytes(Int)
        case later
        case failed(TransferError)
    }

    func take(into space: UnsafeMutableRawBufferPointer) -> Taking {
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
