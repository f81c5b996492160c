import Synchronization

/// Between the loop that receives a body and whoever reads it: holds a little, and makes the server wait where the
/// reader is slower.
final class BodyChannel: Sendable {
    /// Bytes that are held before the loop has to stop taking more.
    static let capacity = 512 * 1024

    private struct State {
        var pieces: [[UInt8]] = []
        var held = 0
        var ending: Result<Void, TransferError>?
        var reader: CheckedContinuation<Void, Never>?
        var isAbandoned = false
        /// The loop stopped, and is to be told of room.
        var isFull = false
        var goOn: (@Sendable () -> Void)?
        var abandon: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// A new attempt fills the channel.
    ///
    /// - Parameters:
    ///   - goOn: there is room again.
    ///   - abandon: nobody reads any more.
    func begin(goOn: @escaping @Sendable () -> Void, abandon: @escaping @Sendable () -> Void) {
        let isAbandoned = state.withLock { state in
            state.goOn = goOn
            state.abandon = abandon
            return state.isAbandoned
        }
        if isAbandoned { abandon() }
    }

    /// - Returns: whether there was room; otherwise nothing is taken, and `goOn` follows.
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

    /// The first ending counts.
    func finish(_ error: TransferError?) {
        let reader = state.withLock { state in
            if state.ending == nil { state.ending = error.map { .failure($0) } ?? .success(()) }
            state.goOn = nil
            state.abandon = nil
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    /// - Returns: everything that is there; `nil` at the end.
    func next() async throws(TransferError) -> [UInt8]? {
        while true {
            let (bytes, ending, goOn) = take()
            goOn?()
            if let bytes { return bytes }
            if let ending {
                try ending.get()
                return nil
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isReady = state.withLock { state in
                        if !state.pieces.isEmpty || state.ending != nil { return true }
                        state.reader = continuation
                        return false
                    }
                    if isReady { continuation.resume() }
                }
            } onCancel: {
                abandon()
            }
        }
    }

    private func take() -> (bytes: [UInt8]?, ending: Result<Void, TransferError>?, goOn: (@Sendable () -> Void)?) {
        state.withLock { state in
            guard !state.pieces.isEmpty else { return (nil, state.ending, nil) }
            let bytes = state.pieces.count == 1 ? state.pieces[0] : Array(state.pieces.joined())
            state.pieces.removeAll(keepingCapacity: true)
            state.held = 0
            guard state.isFull else { return (bytes, nil, nil) }
            state.isFull = false
            return (bytes, nil, state.goOn)
        }
    }

    /// Nobody reads any more: the transfer is of no use, and ends.
    func abandon() {
        let (abandon, reader) = state.withLock {
            state -> ((@Sendable () -> Void)?, CheckedContinuation<Void, Never>?) in
            guard !state.isAbandoned else { return (nil, nil) }
            state.isAbandoned = true
            state.pieces = []
            state.held = 0
            // Where an attempt is under way, its end is the reader's too.
            guard state.abandon == nil else { return (state.abandon, nil) }
            if state.ending == nil { state.ending = .failure(.cancelled) }
            defer { state.reader = nil }
            return (nil, state.reader)
        }
        abandon?()
        reader?.resume()
    }
}
