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
    }

    private let state = Mutex(State())
    /// Nobody reads any more; says whether an end follows.
    private let whenAbandoned: @Sendable () -> Bool

    /// - Parameter whenAbandoned: called once, when nobody reads any more and there has been no end. Says whether one
    ///   follows, at once or later.
    init(whenAbandoned: @escaping @Sendable () -> Bool) {
        self.whenAbandoned = whenAbandoned
    }

    /// A new attempt fills the channel.
    ///
    /// - Parameter goOn: there is room again.
    func begin(goOn: @escaping @Sendable () -> Void) { state.withLock { $0.goOn = goOn } }

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

    /// Nobody reads any more: the request is of no use and ends, whether an attempt is under way or awaited. Its end is
    /// the reader's too.
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
