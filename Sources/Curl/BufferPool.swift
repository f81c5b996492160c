/// Large buffers that transfers of one loop take turns with: taken and given back on the loop's thread alone,
/// so that no lock and, once warm, no allocation stands between a socket and a disk.
package final class BufferPool {
    /// What one `pwrite` gets. Measured best: 256 KiB; less costs calls, more costs cache.
    package static let bufferSize = 256 * 1024
    private static let kept = 64

    private var free: [UnsafeMutableRawBufferPointer] = []

    deinit {
        for buffer in free { buffer.deallocate() }
    }

    package func take() -> UnsafeMutableRawBufferPointer {
        free.popLast() ?? .allocate(byteCount: Self.bufferSize, alignment: 4096)
    }

    package func give(_ buffer: UnsafeMutableRawBufferPointer) {
        if free.count < Self.kept {
            free.append(buffer)
        } else {
            buffer.deallocate()
        }
    }
}
