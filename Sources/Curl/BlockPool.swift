/// A pool of large blocks of memory for the fast transfers of one loop. A block begins at a page boundary, as writes
/// that bypass the page cache require (O_DIRECT, open(2)).
///
/// The pool is limited. Free blocks are returned to the system when the last transfer that uses blocks has ended. Used
/// on the loop's thread only.
package final class BlockPool {
    /// The size of a block in bytes. A disk reaches its full rate with it, and an event loop hands over a thousand of
    /// them a second at the most.
    package static let blockSize = 1 << 20
    /// The number of blocks in use at a time.
    package static let limit = 24

    private var free: [UnsafeMutableRawBufferPointer] = []
    /// The number of blocks taken.
    private var taken = 0
    /// The number of transfers that use blocks.
    private var users = 0

    package init() {}

    deinit { freeBlocks() }

    /// The number of free blocks.
    var freeCount: Int { free.count }

    /// Begins the use of blocks by a transfer.
    package func begin() { users += 1 }

    /// Ends the use of blocks by a transfer. Those it has taken are returned by ``release(_:)``, also afterwards.
    package func end() {
        users -= 1
        if users == 0 { freeBlocks() }
    }

    /// Takes a block.
    ///
    /// - Returns: `nil` if the pool's limit is reached or the system has no memory.
    package func acquire() -> UnsafeMutableRawBufferPointer? {
        if let block = free.popLast() {
            taken += 1
            return block
        }
        guard taken < Self.limit, let block = AnonymousMemory.map(Self.blockSize) else { return nil }
        taken += 1
        return block
    }

    /// - Parameter block: a block taken from this pool.
    package func release(_ block: UnsafeMutableRawBufferPointer) {
        taken -= 1
        if users > 0 { free.append(block) } else { Self.unmap(block) }
    }

    private func freeBlocks() {
        for block in free { Self.unmap(block) }
        free = []
    }

    /// Returns the memory of a block to the system, on any thread.
    package static func unmap(_ block: UnsafeMutableRawBufferPointer) {
        AnonymousMemory.unmap(block)
    }
}
