import Synchronization

/// The counts of one request over all its attempts: one value for its whole life, read at any moment from any
/// thread.
public final class TransferProgress: Sendable {
    private let received = Atomic<Int64>(0)
    private let completed = Atomic<Int64>(0)
    private let total = Atomic<Int64>(-1)
    private let currentPhase = Atomic<Int>(0)

    /// What the request is busy with.
    public enum Phase: Int, Sendable {
        case connecting, transferring, verifying, publishing
    }

    /// - Parameter completedBytes: bytes that are there before the request starts.
    public init(completedBytes: Int64 = 0, totalBytes: Int64? = nil) {
        completed.store(completedBytes, ordering: .relaxed)
        total.store(totalBytes ?? -1, ordering: .relaxed)
    }

    /// Body bytes that came (download) or went (upload), each time they did.
    public var transferredBytes: Int64 { received.load(ordering: .relaxed) }
    /// Bytes of the file that are written (download) or sent (upload).
    public var completedBytes: Int64 { completed.load(ordering: .relaxed) }
    /// Bytes of the whole file, where known.
    public var totalBytes: Int64? {
        let value = total.load(ordering: .relaxed)
        return value < 0 ? nil : value
    }
    public var phase: Phase { Phase(rawValue: currentPhase.load(ordering: .relaxed)) ?? .connecting }

    // One thread at a time writes: the loop of the task that runs.

    func transferred(_ count: Int) {
        received.store(received.load(ordering: .relaxed) + Int64(count), ordering: .relaxed)
    }

    func setCompleted(_ bytes: Int64) { completed.store(bytes, ordering: .relaxed) }

    func setTotal(_ bytes: Int64?) { total.store(bytes ?? -1, ordering: .relaxed) }

    func setPhase(_ phase: Phase) { currentPhase.store(phase.rawValue, ordering: .relaxed) }
}
