import Synchronization

/// The counts of one request over all its attempts. The object can be read at any time from any thread, and as a
/// sequence of snapshots: `for await progress in request.progress { … }`.
///
/// The sequence yields only changes, and not every one: at most one element per 50 ms, but always the last one. It ends
/// with the request. Reading it starts the request, as a handler would.
public final class TransferProgress: Sendable {
    private let received = Atomic<Int64>(0)
    private let completed = Atomic<Int64>(0)
    private let total = Atomic<Int64>(-1)
    private let inUse = Atomic<Int>(0)
    private let currentPhase = Atomic<Int>(0)
    private let heldBack = Atomic<Bool>(false)
    private let turns = Atomic<Int>(0)
    /// Whether a reader waits for a change.
    private let isAwaited = Atomic<Bool>(false)

    private struct State {
        var readers: [CheckedContinuation<Void, Never>] = []
        var isOver = false
        /// Starts the request; called when the sequence is first read.
        var start: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// The activity of the request.
    public enum Phase: Int, Sendable {
        /// A connection is being made; body bytes have not been received or sent yet.
        case connecting
        /// The body is being received or sent.
        case transferring
        /// All bytes are received; the file is checked against its digest and renamed to its final name.
        case verifying
        /// All bytes are received, and there is no digest: the file is synced and renamed to its final name.
        case publishing
    }

    /// - Parameters:
    ///   - completedBytes: the number of bytes that exist before the request starts.
    ///   - totalBytes: the length of the whole in bytes, if known.
    public init(completedBytes: Int64 = 0, totalBytes: Int64? = nil) {
        completed.store(completedBytes, ordering: .relaxed)
        total.store(totalBytes ?? -1, ordering: .relaxed)
    }

    /// The number of body bytes received (download) or sent (upload), counted each time they are.
    public var transferredBytes: Int64 { received.load(ordering: .relaxed) }
    /// The number of bytes written to the file (download), of the body received (data) or of the body sent (upload).
    public var completedBytes: Int64 { completed.load(ordering: .relaxed) }
    /// The length of the whole in bytes, if known.
    public var totalBytes: Int64? {
        let value = total.load(ordering: .relaxed)
        return value < 0 ? nil : value
    }
    /// The number of connections that receive a download's bytes, or are being made for it.
    public var connections: Int { inUse.load(ordering: .relaxed) }
    /// The activity of the request.
    public var phase: Phase { Phase(rawValue: currentPhase.load(ordering: .relaxed)) ?? .connecting }
    /// Whether the transfer pauses because a rate limit is used up.
    public var isHeldBack: Bool { heldBack.load(ordering: .relaxed) }
    /// Whether every connection waits for the turn of its next request at its host; see
    /// ``SessionConfiguration/requestPacer``.
    public var awaitsTurn: Bool {
        let turns = turns.load(ordering: .relaxed)
        return turns > 0 && turns >= connections
    }
    /// The completed fraction, from 0 to 1; `nil` if the total is unknown.
    public var fractionCompleted: Double? { snapshot.fractionCompleted }

    /// The counts at one moment.
    public struct Snapshot: Sendable, Equatable {
        /// The value of ``TransferProgress/completedBytes``.
        public var completedBytes: Int64
        /// The value of ``TransferProgress/totalBytes``.
        public var totalBytes: Int64?
        /// The value of ``TransferProgress/phase-swift.property``.
        public var phase: Phase

        /// The completed fraction, from 0 to 1; 1 if the total is 0, `nil` if it is unknown.
        public var fractionCompleted: Double? {
            guard let totalBytes else { return nil }
            return totalBytes <= 0 ? 1 : Swift.min(1, Double(completedBytes) / Double(totalBytes))
        }
    }

    /// The present counts. They are read one by one while the transfer goes on.
    public var snapshot: Snapshot {
        Snapshot(completedBytes: completedBytes, totalBytes: totalBytes, phase: phase)
    }

    // Only one thread at a time writes: the event loop of the running task.

    func transferred(_ count: Int) {
        received.store(received.load(ordering: .relaxed) + Int64(count), ordering: .relaxed)
    }

    func setCompleted(_ bytes: Int64) {
        completed.store(bytes, ordering: .sequentiallyConsistent)
        notify()
    }

    func setTotal(_ bytes: Int64?) {
        total.store(bytes ?? -1, ordering: .sequentiallyConsistent)
        notify()
    }

    func setHeldBack(_ isHeldBack: Bool) { heldBack.store(isHeldBack, ordering: .relaxed) }

    /// Counts requests that wait for their turn. Called on any thread.
    func addAwaitedTurns(_ count: Int) { turns.wrappingAdd(count, ordering: .relaxed) }

    func setConnections(_ count: Int) { inUse.store(count, ordering: .relaxed) }

    func setPhase(_ phase: Phase) {
        currentPhase.store(phase.rawValue, ordering: .sequentiallyConsistent)
        notify()
    }

    /// Wakes the waiting readers. Without any, this costs one atomic load. Otherwise it takes a lock, and a reader
    /// waits at most once in 50 ms.
    private func notify() {
        guard isAwaited.load(ordering: .sequentiallyConsistent) else { return }
        wake(isOver: false)
    }

    /// - Parameter start: called once, when the sequence is first read.
    func whenRead(_ start: @escaping @Sendable () -> Void) { state.withLock { $0.start = start } }

    private func begin() {
        let start = state.withLock { state in
            defer { state.start = nil }
            return state.start
        }
        start?()
    }

    /// Reopens the sequence, since a request continues the counts of an earlier one.
    func resume() { state.withLock { $0.isOver = false } }

    /// Ends the sequence, since the request is complete.
    func finish() { wake(isOver: true) }

    private func wake(isOver: Bool) {
        let readers = state.withLock { state in
            if isOver {
                state.isOver = true
                state.start = nil
            }
            isAwaited.store(false, ordering: .sequentiallyConsistent)
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.resume() }
    }
}

extension TransferProgress: AsyncSequence {
    public typealias Element = Snapshot
    public typealias Failure = Never

    public func makeAsyncIterator() -> Iterator { Iterator(progress: self) }

    /// The iterator of one reader. Each reader gets all changes, independently of the others.
    public struct Iterator: AsyncIteratorProtocol {
        let progress: TransferProgress
        private var last: Snapshot?
        private var lastTime: ContinuousClock.Instant?

        /// The minimum interval between elements, except before the last one.
        static let interval = Duration.milliseconds(50)

        init(progress: TransferProgress) {
            self.progress = progress
        }

        public mutating func next() async -> Snapshot? {
            if last == nil { progress.begin() }
            if let lastTime, !progress.isOver {
                try? await Task.sleep(until: lastTime + Self.interval, clock: .continuous)
            }
            while !Task.isCancelled {
                // `isOver` is read first, so that changes made before the end are seen.
                let isOver = progress.isOver
                let now = progress.snapshot
                if now != last {
                    last = now
                    lastTime = .now
                    return now
                }
                if isOver { return nil }
                await progress.change(from: now)
            }
            return nil
        }
    }

    private var isOver: Bool { state.withLock { $0.isOver } }

    /// Waits until the counts may differ from `known`, or the request is complete.
    private func change(from known: Snapshot) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    isAwaited.store(true, ordering: .sequentiallyConsistent)
                    // A writer that did not see the flag has stored its count earlier, so that this comparison sees it.
                    if state.isOver || snapshot != known || Task.isCancelled { return true }
                    state.readers.append(continuation)
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            wake(isOver: false)
        }
    }
}

extension TransferProgress: CustomStringConvertible {
    /// The description of the ``snapshot``.
    public var description: String { snapshot.description }
}

extension TransferProgress.Snapshot: CustomStringConvertible {
    /// The counts and the activity, as in `12 of 24 bytes (50 %), transferring`.
    public var description: String {
        let share = totalBytes == nil ? nil : fractionCompleted.map { " (\(Int(Swift.max(0, $0) * 100)) %)" }
        return "\(ReadableText.bytes(completedBytes, of: totalBytes))\(share ?? ""), \(phase)"
    }
}
