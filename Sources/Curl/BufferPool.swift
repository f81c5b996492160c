/// A pool of reusable buffers for the transfers of one loop. Buffers are taken and returned on the loop's thread only,
/// so there is no lock and, once the pool is warm, no allocation between a socket and a disk. ``abandon(_:)`` is the
/// exception.
///
/// Buffers have a few sizes. Thousands of slow transfers hold a small buffer each, and fast ones a large one.
package final class BufferPool {
    /// The smallest size in bytes.
    package static let smallestSize = PagePool.pageSize
    /// The largest size in bytes.
    package static let bufferSize = 256 << 10
    /// The sizes in bytes, in ascending order.
    private static let sizes = [smallestSize, 16 << 10, 64 << 10, BodyBuffer.largestSize, bufferSize]
    /// The number of bytes in free buffers kept of each size, and the least number of buffers kept.
    private static let keptBytes = 1 << 20
    private static let keptBuffers = 16
    /// The number of returned buffers of a size after which the pool frees those that were not needed in the meantime.
    static let turn = 128

    /// The free buffers of one size.
    private struct SizeClass {
        var free: [UnsafeMutableRawBufferPointer] = []
        /// The number of buffers not taken since the turn began.
        var idle = 0
        /// The number of buffers returned since the turn began.
        var returned = 0
    }

    /// The size classes, the smallest size first.
    private var classes: [SizeClass]
    /// The memory of the smallest buffers.
    private let pages = PagePool()

    package init() {
        classes = Array(repeating: SizeClass(), count: Self.sizes.count)
    }

    deinit {
        for sizeClass in classes { for buffer in sizeClass.free { free(buffer) } }
    }

    /// The number of free buffers of all sizes.
    var freeCount: Int { classes.reduce(0) { $0 + $1.free.count } }

    /// Takes a buffer.
    ///
    /// - Parameter count: the number of bytes to make room for, at most the largest size. The buffer is no larger than
    ///   that even if `count` is.
    package func acquire(_ count: Int = bufferSize) -> UnsafeMutableRawBufferPointer {
        let sizeClass = Self.sizeClass(of: count)
        guard let buffer = classes[sizeClass].free.popLast() else {
            return allocate(Self.sizes[sizeClass])
        }
        classes[sizeClass].idle = min(classes[sizeClass].idle, classes[sizeClass].free.count)
        return buffer
    }

    /// - Parameter buffer: a buffer taken from a pool.
    package func release(_ buffer: UnsafeMutableRawBufferPointer) {
        let sizeClass = Self.sizeClass(of: buffer.count)
        if classes[sizeClass].free.count < max(Self.keptBuffers, Self.keptBytes / buffer.count) {
            classes[sizeClass].free.append(buffer)
        } else {
            free(buffer)
        }
        classes[sizeClass].returned += 1
        if classes[sizeClass].returned >= Self.turn { endTurn(of: sizeClass) }
    }

    /// Returns a buffer on a thread that may not be the loop's.
    package func abandon(_ buffer: UnsafeMutableRawBufferPointer) {
        if buffer.count == Self.smallestSize { pages.abandon(buffer) } else { buffer.deallocate() }
    }

    private func allocate(_ size: Int) -> UnsafeMutableRawBufferPointer {
        if size == Self.smallestSize, let page = pages.acquire() { return page }
        return .allocate(byteCount: size, alignment: 16)
    }

    private func free(_ buffer: UnsafeMutableRawBufferPointer) {
        if buffer.count == Self.smallestSize, pages.release(buffer) { return }
        buffer.deallocate()
    }

    /// Frees the buffers that were idle for the whole turn, so that a single peak in demand is not kept for ever.
    private func endTurn(of sizeClass: Int) {
        defer {
            classes[sizeClass].idle = classes[sizeClass].free.count
            classes[sizeClass].returned = 0
        }
        let idle = classes[sizeClass].idle
        guard idle > 0 else { return }
        // The last buffer is taken first, so the idle ones are at the front.
        for buffer in classes[sizeClass].free.prefix(idle) { free(buffer) }
        classes[sizeClass].free.removeFirst(idle)
    }

    /// Returns the index of the smallest size that has room for `count` bytes, or of the largest size.
    private static func sizeClass(of count: Int) -> Int {
        // A closure could be allocated on the heap when the optimiser does not prevent it, as could an iterator.
        var sizeClass = 0
        while sizeClass < sizes.count - 1, sizes[sizeClass] < count { sizeClass += 1 }
        return sizeClass
    }

    /// Returns the size of the largest buffer of no more than `limit` bytes, or of the smallest one.
    static func largestSize(within limit: Int) -> Int {
        var sizeClass = sizes.count - 1
        while sizeClass > 0, sizes[sizeClass] > limit { sizeClass -= 1 }
        return sizes[sizeClass]
    }
}
