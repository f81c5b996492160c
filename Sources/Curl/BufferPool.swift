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

    /// Free buffers, those of the smallest size first.
    private var free: [[UnsafeMutableRawBufferPointer]]

    package init() {
        free = Array(repeating: [], count: Self.sizeClass(of: Self.bufferSize) + 1)
    }

    deinit {
        for buffer in free.joined() { buffer.deallocate() }
    }

    /// - Parameter count: bytes to make room for; more than the largest buffer has are not met.
    package func take(_ count: Int = bufferSize) -> UnsafeMutableRawBufferPointer {
        let sizeClass = Self.sizeClass(of: count)
        return free[sizeClass].popLast() ?? .allocate(byteCount: Self.size(of: sizeClass), alignment: 16)
    }

    /// - Parameter buffer: one of a pool's.
    package func give(_ buffer: UnsafeMutableRawBufferPointer) {
        let sizeClass = Self.sizeClass(of: buffer.count)
        if free[sizeClass].count < max(Self.keptBuffers, Self.keptBytes / buffer.count) {
            free[sizeClass].append(buffer)
        } else {
            buffer.deallocate()
        }
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
