/// A buffer that gathers the bytes of a fast body into large blocks, taken from the loop's pool.
///
/// Blocks end at multiples of ``BlockPool/blockSize`` in the file, so that each but the first and the last one can be
/// written without the page cache.
package struct BlockBuffer: ~Copyable {
    private let pool: BlockPool
    private var memory: UnsafeMutableRawBufferPointer?
    /// The number of bytes in the block.
    package private(set) var count = 0
    /// The number of bytes at which the block is full.
    private var capacity = 0
    /// The time at which the first of them was received.
    private var begun = MonotonicTime(nanoseconds: 0)
    /// Whether bytes are gathered in blocks.
    package private(set) var isInUse = false

    /// The time for which a block accepts bytes, in milliseconds. A body that does not fill one within that time is not
    /// fast.
    private static let moment: Int64 = 250

    package init(pool: BlockPool) { self.pool = pool }

    // A run releases its blocks before it ends; the pool belongs to a thread that may not be this one.
    deinit { if let memory { BlockPool.unmap(memory) } }

    /// Begins to gather bytes in blocks.
    package mutating func begin() {
        guard !isInUse else { return }
        isInUse = true
        pool.begin()
    }

    /// Ends the use of blocks. No bytes may be left in the block.
    package mutating func end() {
        guard isInUse else { return }
        release()
        isInUse = false
        pool.end()
    }

    /// Whether the block has no room left.
    package var isFull: Bool { memory != nil && count == capacity }

    /// Appends bytes.
    ///
    /// - Parameter position: the offset in the file of the first of them.
    /// - Returns: the number of bytes appended; 0 if the block has to be written first, or if there is none.
    package mutating func append(_ bytes: UnsafeRawBufferPointer, at position: Int64, now: MonotonicTime) -> Int {
        if memory == nil {
            memory = pool.acquire()
            capacity = BlockPool.blockSize - Int(position % Int64(BlockPool.blockSize))
            begun = now
        }
        guard let memory, count == 0 || now.milliseconds(since: begun) < Self.moment else { return 0 }
        let taken = min(bytes.count, capacity - count)
        UnsafeMutableRawBufferPointer(rebasing: memory[count..<count + taken])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
        count += taken
        return taken
    }

    /// Transfers ownership of the memory with the bytes to the caller, who must return it to the pool.
    package mutating func detachMemory() -> UnsafeMutableRawBufferPointer? {
        defer {
            memory = nil
            count = 0
        }
        return memory
    }

    /// Discards the bytes and returns the memory to the pool.
    package mutating func release() {
        if let memory = detachMemory() { pool.release(memory) }
    }
}
