import Synchronization

/// A bounded buffer between the event loop that receives a response body and the reader that consumes it. A slow reader
/// exerts back-pressure: the loop stops receiving while the buffer is full.
final class BodyChannel: Sendable {
    /// The number of buffered bytes at which the loop has to stop receiving.
    static let capacity = 512 * 1024

    private struct State {
        var pieces: [[UInt8]] = []
        var held = 0
        var ending: Result<Void, TransferError>?
        var reader: CheckedContinuation<Void, Never>?
        var isAbandoned = false
        /// Whether a reader has received the end of the body, or was released after the body had ended.
        var isRead = false
        /// Whether a piece was refused, so that `resume` has to be called once there is room.
        var isFull = false
        var resume: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    /// Called when the reader abandons the channel before the body ended. Returns whether ``finish(_:)`` still follows.
    private let whenAbandoned: @Sendable () -> Bool

    /// - Parameter whenAbandoned: called at most once, when the reader abandons the channel before the body ended. It
    ///   returns whether ``finish(_:)`` still follows, at once or later.
    init(whenAbandoned: @escaping @Sendable () -> Bool) {
        self.whenAbandoned = whenAbandoned
    }

    /// Prepares the channel for a new attempt.
    ///
    /// - Parameter resume: called when there is room again after a refused piece.
    func begin(resume: @escaping @Sendable () -> Void) { state.withLock { $0.resume = resume } }

    /// Appends a piece to the buffer. An abandoned channel accepts and discards it.
    ///
    /// - Returns: whether the piece was accepted. If the buffer is full, the piece is refused and `resume` is called
    ///   later.
    func put(_ bytes: [UInt8]) -> Bool {
        let (taken, reader) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            if state.isAbandoned { return (true, nil) }
            if state.held >= Self.capacity {
                state.isFull = true
                return (false, nil)
            }
            state.pieces.append(bytes)
            state.held += bytes.count
            defer { state.reader = nil }
            return (true, state.reader)
        }
        reader?.resume()
        return taken
    }

    /// Ends the body, with an error if it failed. Only the first call has an effect.
    func finish(_ error: TransferError?) {
        let reader = state.withLock { state in
            if state.ending == nil { state.ending = error.map { .failure($0) } ?? .success(()) }
            state.resume = nil
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    /// Returns the next bytes.
    ///
    /// - Parameter isFirst: whether the reader has received nothing before.
    /// - Returns: all buffered bytes, joined; `nil` at the end of the body.
    /// - Throws: the error that ended the body, or ``TransferError/Code/invalidRequest`` if another reader had the body.
    func next(isFirst: Bool = false) async throws(TransferError) -> [UInt8]? {
        while true {
            let (bytes, ending, isRead, resume) = removeNext()
            resume?()
            if let bytes { return bytes }
            if let ending {
                try ending.get()
                if isFirst, isRead {
                    throw TransferError(.invalidRequest, "the body was already read; it can be read once")
                }
                return nil
            }
            var isAlone = true
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isReady = state.withLock { state in
                        if !state.pieces.isEmpty || state.ending != nil { return true }
                        isAlone = state.reader == nil
                        if isAlone { state.reader = continuation }
                        return !isAlone
                    }
                    if isReady { continuation.resume() }
                }
            } onCancel: {
                abandon()
            }
            guard isAlone else { throw TransferError(.invalidRequest, "two tasks read the same body at once") }
        }
    }

    private func removeNext() -> (
        bytes: [UInt8]?, ending: Result<Void, TransferError>?, isRead: Bool, resume: (@Sendable () -> Void)?
    ) {
        state.withLock { state in
            guard !state.pieces.isEmpty else {
                defer { if state.ending != nil { state.isRead = true } }
                return (nil, state.ending, state.isRead, nil)
            }
            let bytes = state.pieces.count == 1 ? state.pieces[0] : Array(state.pieces.joined())
            state.pieces.removeAll(keepingCapacity: true)
            state.held = 0
            guard state.isFull else { return (bytes, nil, false, nil) }
            state.isFull = false
            return (bytes, nil, false, state.resume)
        }
    }

    /// Abandons the channel, since its reader is released.
    func release() {
        state.withLock { if $0.ending != nil { $0.isRead = true } }
        abandon()
    }

    /// Abandons the channel: drops the buffered bytes and discards all later ones. The request has no use any more and
    /// is ended, whether an attempt is under way or still to come. The reader is resumed with that end.
    func abandon() {
        let isOver = state.withLock { state in
            defer {
                state.isAbandoned = true
                state.pieces = []
                state.held = 0
            }
            return state.isAbandoned || state.ending != nil
        }
        if !isOver, !whenAbandoned() { finish(.cancelled) }
    }
}
