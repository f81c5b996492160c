/// Buffers that transfers of one loop take turns with: taken and given back on the loop's thread alone,
/// so that no lock and, once warm, no allocation stands between a socket and a disk.
///
/// They come in a few sizes: thousands of slow transfers hold a small one each, and fast ones a large one.
package final class BufferPool {
    /// The largest. What one `pwrite` gets. Measured best: 256 KiB; less costs calls, more costs cache.
    package static let bufferSize = 256 * 1024
    /// The smallest: a page.
    package static let smallestSize = 4 * 1024
    /// Each size is so many times the one below it.
    package static let growth = 4
    /// Bytes of free buffers that are kept of each size, and buffers that are kept at least.
    private static let keptBytes = 1 << 20
    private static let keptBuffers = 16
    /// Returned buffers of a size after which those go that nobody has needed meanwhile.
    static let turn = 128

    /// The free buffers of one size.
    private struct Shelf {
        var free: [UnsafeMutableRawBufferPointer] = []
        /// Buffers that were never taken since the turn began.
        var idle = 0
        /// Buffers that have come back since the turn began.
        var returned = 0
    }

    /// Those of the smallest size first.
    private var shelves: [Shelf]

    package init() {
        shelves = Array(repeating: Shelf(), count: Self.sizeClass(of: Self.bufferSize) + 1)
    }

    deinit {
        for shelf in shelves { for buffer in shelf.free { buffer.deallocate() } }
    }

    /// Free buffers of all sizes.
    var freeCount: Int { shelves.reduce(0) { $0 + $1.free.count } }

    /// - Parameter count: bytes to make room for; more than the largest buffer has are not met.
    package func take(_ count: Int = bufferSize) -> UnsafeMutableRawBufferPointer {
        let sizeClass = Self.sizeClass(of: count)
        guard let buffer = shelves[sizeClass].free.popLast() else {
            return .allocate(byteCount: Self.size(of: sizeClass), alignment: 16)
        }
        shelves[sizeClass].idle = min(shelves[sizeClass].idle, shelves[sizeClass].free.count)
        return buffer
    }

    /// - Parameter buffer: one of a pool's.
    package func give(_ buffer: UnsafeMutableRawBufferPointer) {
        let sizeClass = Self.sizeClass(of: buffer.count)
        if shelves[sizeClass].free.count < max(Self.keptBuffers, Self.keptBytes / buffer.count) {
            shelves[sizeClass].free.append(buffer)
        } else {
            buffer.deallocate()
        }
        shelves[sizeClass].returned += 1
        if shelves[sizeClass].returned >= Self.turn { endTurn(of: sizeClass) }
    }

    /// Frees the buffers that lay idle for the whole turn: what many transfers needed at once, once, is not kept for ever.
    private func endTurn(of sizeClass: Int) {
        defer {
            shelves[sizeClass].idle = shelves[sizeClass].free.count
            shelves[sizeClass].returned = 0
        }
        let idle = shelves[sizeClass].idle
        guard idle > 0 else { return }
        // The last one is taken first: those that lay idle come first.
        for buffer in shelves[sizeClass].free.prefix(idle) { buffer.deallocate() }
        shelves[sizeClass].free.removeFirst(idle)
    }

    /// The number of the smallest size that has room for so many bytes, or of the largest size.
    private static func sizeClass(of count: Int) -> Int {
        var (sizeClass, size) = (0, smallestSize)
        while size < min(count, bufferSize) {
            size *= growth
            sizeClass += 1
        }
        return sizeClass
    }

    /// The size of the largest buffer that has no more than so many bytes, or of the smallest one.
    static func largestSize(within limit: Int) -> Int {
        var size = smallestSize
        while size < bufferSize, size * growth <= limit { size *= growth }
        return size
    }

    private static func size(of sizeClass: Int) -> Int {
        (0..<sizeClass).reduce(smallestSize) { size, _ in size * growth }
    }
}
