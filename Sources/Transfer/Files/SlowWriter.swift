import Curl
import DequeModule
import Synchronization

/// A writer of the blocks of a file on a slow disk. It writes them in order on a separate thread, so that the event
/// loop and its other transfers do not wait.
final class SlowWriter: Sendable {
    /// A block to be written.
    ///
    /// `@unchecked`: the buffer has one owner at a time, first the event loop, then the writing thread, then the loop
    /// again.
    struct Block: @unchecked Sendable {
        let buffer: UnsafeMutableRawBufferPointer
        let count: Int
        let part: PartFile
        let run: PartFile.WriteRun
    }

    private struct State {
        var blocks: Deque<Block> = []
        var isAtWork = false
        /// The error of an earlier block. Later blocks are not written, since they would leave a hole.
        var failure: TransferError?
    }

    private let threads: WorkerThreads
    private let wrote: @Sendable (Block, TransferError?, _ milliseconds: Int64) -> Void
    private let state = Mutex(State())

    /// - Parameter wrote: called for each block in order, on the thread that wrote it.
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
            guard let (block, known) = next else { return }
            var failure = known
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
