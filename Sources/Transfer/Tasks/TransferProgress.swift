import Synchronization

/// The counts of one request over all its attempts: one value for its whole life, read at any moment from any thread,
/// and a sequence of what they were: `for await progress in request.progress { … }`.
///
/// The sequence gives what is new, not every step: at most one element in 50 ms, and the last one always. It ends with
/// the request. Who reads it wants the request to get on: that starts it, as a handler would.
public final class TransferProgress: Sendable {
    private let received = Atomic<Int64>(0)
    private let completed = Atomic<Int64>(0)
    private let total = Atomic<Int64>(-1)
    private let inUse = Atomic<Int>(0)
    private let currentPhase = Atomic<Int>(0)
    private let heldBack = Atomic<Bool>(false)
    /// Somebody wants to hear of a change.
    private let isAwaited = Atomic<Bool>(false)

    private struct State {
        var readers: [CheckedContinuation<Void, Never>] = []
        var isOver = false
        /// Sets going what is to be read about.
        var start: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// What the request is busy with.
    public enum Phase: Int, Sendable {
        /// No byte of the body yet.
        case connecting
        /// The body is on its way.
        case transferring
        /// The whole file is here: it is held against its digest and given its name.
        case verifying
        /// As ``verifying``, where there is no digest: the file is brought to the disk and given its name.
        case publishing
    }

    /// - Parameters:
    ///   - completedBytes: bytes that are there before the request starts.
    ///   - totalBytes: bytes of the whole, where known.
    public init(completedBytes: Int64 = 0, totalBytes: Int64? = nil) {
        completed.store(completedBytes, ordering: .relaxed)
        total.store(totalBytes ?? -1, ordering: .relaxed)
    }

    /// Body bytes that came (download) or went (upload), each time they did.
    public var transferredBytes: Int64 { received.load(ordering: .relaxed) }
    /// Bytes of the file that are written (download), of the body that came (data) or were sent (upload).
    public var completedBytes: Int64 { completed.load(ordering: .relaxed) }
    /// Bytes of the whole, where known.
    public var totalBytes: Int64? {
        let value = total.load(ordering: .relaxed)
        return value < 0 ? nil : value
    }
    /// Connections that bring a download's bytes, or are being made for it.
    public var connections: Int { inUse.load(ordering: .relaxed) }
    /// What the request is busy with.
    public var phase: Phase { Phase(rawValue: currentPhase.load(ordering: .relaxed)) ?? .connecting }
    /// Nothing comes or goes for the moment, since a rate limit is used up.
    public var isHeldBack: Bool { heldBack.load(ordering: .relaxed) }
    /// Between 0 and 1, where the whole is known.
    public var fractionCompleted: Double? { snapshot.fractionCompleted }

    /// The counts at one moment.
    public struct Snapshot: Sendable, Equatable {
        /// As ``TransferProgress/completedBytes``.
        public var completedBytes: Int64
        /// As ``TransferProgress/totalBytes``.
        public var totalBytes: Int64?
        /// As ``TransferProgress/phase-swift.property``.
        public var phase: Phase

        /// Between 0 and 1, where the whole is known; 1 for an empty one.
        public var fractionCompleted: Double? {
            guard let totalBytes else { return nil }
            return totalBytes <= 0 ? 1 : Swift.min(1, Double(completedBytes) / Double(totalBytes))
        }
    }

    /// The counts as they are now; each is read by itself while the transfer goes on.
    public var snapshot: Snapshot {
        Snapshot(completedBytes: completedBytes, totalBytes: totalBytes, phase: phase)
    }

    // One thread at a time writes: the loop of the task that runs.

    func transferred(_ count: Int) {
        received.store(received.load(ordering: .relaxed) + Int64(count), ordering: .relaxed)
    }

    func setCompleted(_ bytes: Int64) {
        completed.store(bytes, ordering: .sequentiallyConsistent)
        tell()
    }

    func setTotal(_ bytes: Int64?) {
        total.store(bytes ?? -1, ordering: .sequentiallyConsistent)
        tell()
    }

    func setHeldBack(_ isHeldBack: Bool) { heldBack.store(isHeldBack, ordering: .relaxed) }

    func setConnections(_ count: Int) { inUse.store(count, ordering: .relaxed) }

    func setPhase(_ phase: Phase) {
        currentPhase.store(phase.rawValue, ordering: .sequentiallyConsistent)
        tell()
    }

    /// Costs one look where nobody listens, and a lock where somebody waits, which nobody does more often than they
    /// may.
    private func tell() {
        guard isAwaited.load(ordering: .sequentiallyConsistent) else { return }
        wake(isOver: false)
    }

    /// - Parameter start: called once, when somebody begins to read.
    func whenRead(_ start: @escaping @Sendable () -> Void) { state.withLock { $0.start = start } }

    private func begin() {
        let start = state.withLock { state in
            defer { state.start = nil }
            return state.start
        }
        start?()
    }

    /// A request goes on from an earlier one's counts: the sequence has more to say.
    func goOn() { state.withLock { $0.isOver = false } }

    /// The request is complete.
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

    /// One reader's place; each is told of everything.
    public struct Iterator: AsyncIteratorProtocol {
        let progress: TransferProgress
        private var last: Snapshot?
        private var lastTime: ContinuousClock.Instant?

        /// Elements are at least so far apart, save the last one.
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
                // In this order: what was counted before the end is seen.
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
                    // Whoever counted before they could see the flag is seen here.
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
