import Curl
import DequeModule
import Synchronization

/// A writer of the blocks of one file. It writes them in order on a separate thread, so that the event loop and its
/// other transfers do not wait for the disk.
final class BlockWriter: Sendable {
    /// A block to be written.
    ///
    /// `@unchecked`: the buffer has one owner at a time, first the event loop, then the writing thread, then the loop
    /// again.
    struct Block: @unchecked Sendable {
        let buffer: UnsafeMutableRawBufferPointer
        let count: Int
        let part: PartFile
        let run: PartFile.WriteRun
        /// Whether a write by another process is an error. Without that, the digest of the file shows it.
        let refusesChanges: Bool

        /// Whether the buffer is one of ``BlockPool``, for a write without the page cache.
        var isLarge: Bool { buffer.count == BlockPool.blockSize }

        var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<count]) }
    }

    /// The result of a block.
    struct Outcome: Sendable {
        var error: TransferError?
        /// Whether another process has written to the file before.
        var wasModified = false
        /// The duration of the write in milliseconds.
        var milliseconds: Int64 = 0
    }

    private enum Step: Sendable {
        case write(Block)
        case perform(@Sendable () -> Void)
    }

    private struct State {
        var steps: Deque<Step> = []
        var isAtWork = false
        /// The error of an earlier block. Later blocks are not written, since they would leave a hole.
        var failure: TransferError?
    }

    private let threads: WorkerThreads
    private let wrote: @Sendable (Block, Outcome) -> Void
    private let state = Mutex(State())

    /// - Parameter wrote: called for each block in order, on the thread that wrote it.
    init(on threads: WorkerThreads, _ wrote: @escaping @Sendable (Block, Outcome) -> Void) {
        self.threads = threads
        self.wrote = wrote
    }

    func write(_ block: Block) { add(.write(block)) }

    /// Calls `work` on the writer's thread, after the blocks before it.
    func perform(_ work: @escaping @Sendable () -> Void) { add(.perform(work)) }

    private func add(_ step: Step) {
        let begins = state.withLock { state in
            state.steps.append(step)
            defer { state.isAtWork = true }
            return !state.isAtWork
        }
        if begins { threads.perform { [self] in work() } }
    }

    /// The number of steps after which the thread does other work that waits for it.
    private static let turn = 16

    private func work() {
        for _ in 0..<Self.turn {
            let next = state.withLock { state -> Step? in
                let step = state.steps.popFirst()
                if step == nil { state.isAtWork = false }
                return step
            }
            switch next {
            case .write(let block): wrote(block, attempt(block))
            case .perform(let work): work()
            case nil: return
            }
        }
        threads.perform { [self] in work() }
    }

    private func attempt(_ block: Block) -> Outcome {
        var outcome = Outcome()
        if let known = state.withLock({ $0.failure }) {
            outcome.error = known
            return outcome
        }
        let begun = MonotonicTime.now()
        do throws(TransferError) {
            outcome.wasModified = try block.part.wasModified()
            if outcome.wasModified {
                guard !block.refusesChanges else {
                    throw TransferError(.remoteChanged, "another process changed the part file")
                }
                block.part.recordChange()
            }
            if block.isLarge {
                try block.part.writeUncached(block.bytes, to: block.run)
            } else {
                try block.part.write(block.bytes, to: block.run)
            }
        } catch {
            outcome.error = error
            state.withLock { $0.failure = error }
        }
        outcome.milliseconds = MonotonicTime.now().milliseconds(since: begun)
        return outcome
    }
}
