import Glibc

/// Memory mapped from the system, apart from the heap. It begins at a page boundary and consists of zeros.
enum AnonymousMemory {
    /// Maps memory.
    ///
    /// - Returns: `nil` if the system has none.
    static func map(_ size: Int) -> UnsafeMutableRawBufferPointer? {
        guard let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            memory != MAP_FAILED
        else { return nil }
        return UnsafeMutableRawBufferPointer(start: memory, count: size)
    }

    /// Returns mapped memory to the system, on any thread.
    static func unmap(_ memory: UnsafeMutableRawBufferPointer) {
        _ = munmap(memory.baseAddress, memory.count)  // it fails only for addresses that are none of a mapping
    }
}
