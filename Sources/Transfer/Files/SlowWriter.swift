import Curl
import Synchronization

/// Writes the blocks of a file whose disk is slow, one after another on a thread for that, so that the loop, and all
/// other transfers on it, need not wait.
final class SlowWriter: Sendable {
    /// A block on its way to the disk.
    ///
    /// `@unchecked`: its buffer belongs to whoever holds it, one after the other: the loop, the thread that writes, the
    /// loop.
    struct Block: @unchecked Sendable {
        let buffer: UnsafeMutableRawBufferPointer
        let count: Int
        let part: PartFile
        let run: PartFile.WriteRun
    }

    private struct State {
        var blocks = FIFO<Block>()
        var isAtWork = false
        /// What an earlier block failed for: those behind it would leave a hole.
        var failure: TransferError?
    }

    private let threads: WorkerThreads
    private let wrote: @Sendable (Block, TransferError?, _ milliseconds: Int64) -> Void
    private let state = Mutex(State())

    /// - Parameter wrote: called for each block in its turn, on the thread that wrote.
    init(
        on threads: WorkerThreads, _ wrote: @escaping @Sendable (Block, TransferError?, _ milliseconds: Int64) -> Void
    ) {
        self.threads = threads
        self.wrote = wrote
    }

    func write(_ block: Block) {
        let begins = state.withLock { state in
            state.blocks.append(block)
            defer { state.isAtWork = true }
            return !state.isAtWork
        }
        if begins { threads.perform { [self] in work() } }
    }

    private func work() {
        while true {
            let next = state.withLock { state -> (Block, TransferError?)? in
                guard let block = state.blocks.first else {
                    state.isAtWork = false
                    return nil
                }
                state.blocks.removeFirst()
                return (block, state.failure)
            }
            guard var (block, failure) = next else { return }
            let begun = MonotonicTime.now()
            if failure == nil {
                do throws(TransferError) {
                    try block.part.write(UnsafeRawBufferPointer(rebasing: block.buffer[..<block.count]), to: block.run)
                } catch {
                    failure = error
                    state.withLock { $0.failure = error }
                }
            }
            wrote(block, failure, MonotonicTime.now().milliseconds(since: begun))
        }
    }
}
