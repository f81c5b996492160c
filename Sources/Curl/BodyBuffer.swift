/// A buffer of received body bytes, taken from the loop's pool. Memory is held only while there are bytes in it. Its
/// size follows the body's rate.
///
/// A buffer that fills within 250 milliseconds is replaced by a larger one. A buffer larger than the smallest accepts
/// bytes for no longer than that, and must then be written. After its first second, a body gets no larger buffer than
/// its rate fills within that time. A slow body that arrives in bursts then holds the smallest buffer between them.
/// While many bodies arrive, this holds from the first byte on, since thousands of first bursts would leave thousands
/// of holes in the heap.
package struct BodyBuffer: ~Copyable {
    private let pool: BufferPool
    private var memory: UnsafeMutableRawBufferPointer?
    /// The number of bytes in the buffer.
    package private(set) var count = 0
    /// The time at which the first of them was received.
    private var begun = MonotonicTime(nanoseconds: 0)
    /// The size of the next buffer, unless more bytes arrive at once.
    private var nextSize = BufferPool.smallestSize
    private var pace = BodyPace()
    /// Whether the last buffer had the largest size and was filled so quickly that larger blocks are worth their memory.
    package private(set) var isFast = false

    /// The time within which a buffer has to fill for the body to get a larger one, and for which a larger one accepts
    /// bytes, in milliseconds.
    private static let moment: Int64 = 250
    /// The time in milliseconds within which a fast body fills the largest buffer: at 16 MiB a second.
    private static let fastFill: Int64 = 8
    /// The size of the largest buffer of a body, which is also the most bytes of one `pwrite`. 128 KiB measured best:
    /// smaller writes cost system calls, and larger ones need larger pieces of contiguous memory for the file's pages.
    package static let largestSize = 128 << 10

    package init(pool: BufferPool) { self.pool = pool }

    // This thread may not be the pool's.
    deinit { if let memory { pool.abandon(memory) } }

    /// Whether the buffer has the largest size and no room left.
    package var isFull: Bool { count == Self.largestSize }

    /// The size of the memory held, in bytes.
    var size: Int { memory?.count ?? 0 }

    /// The buffered bytes, in order of arrival; valid until the next call that changes the buffer.
    package var bytes: UnsafeRawBufferPointer {
        guard let memory else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: memory[..<count])
    }

    /// Appends bytes.
    ///
    /// - Parameter isCrowded: whether many other bodies are being received at the same time.
    /// - Returns: the number of bytes appended; 0 if the buffered bytes have to be written first.
    package mutating func append(_ bytes: UnsafeRawBufferPointer, now: MonotonicTime, isCrowded: Bool = false) -> Int {
        let largest =
            isCrowded || pace.isKnown
            ? BufferPool.largestSize(within: min(pace.quarter, Self.largestSize)) : Self.largestSize
        guard !bytes.isEmpty, let memory = room(for: bytes.count, within: largest, now) else { return 0 }
        let taken = min(bytes.count, memory.count - count)
        UnsafeMutableRawBufferPointer(rebasing: memory[count..<count + taken])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
        count += taken
        pace.record(taken, now: now)
        return taken
    }

    /// Returns memory with room for `length` more bytes, or for some of them if no buffer is large enough.
    ///
    /// The smallest buffer is filled to its end however slowly the bytes arrive. Blocks that end at a page boundary
    /// cost the file system least.
    ///
    /// - Parameter largest: the size of the largest buffer to take.
    /// - Returns: `nil` if there is no room.
    private mutating func room(
        for length: Int, within largest: Int, _ now: MonotonicTime
    ) -> UnsafeMutableRawBufferPointer? {
        guard let memory else {
            let first = pool.acquire(min(max(length, nextSize), largest))
            memory = first
            begun = now
            return first
        }
        if isRecent(now), length > memory.count - count, memory.count < largest {
            let larger = pool.acquire(min(count + length, largest))
            larger.copyMemory(from: bytes)
            pool.release(memory)
            self.memory = larger
            return larger
        }
        let mayFill = isRecent(now) || memory.count == BufferPool.smallestSize
        return mayFill && count < memory.count ? memory : nil
    }

    private func isRecent(_ now: MonotonicTime) -> Bool { now.milliseconds(since: begun) < Self.moment }

    /// Discards the buffered bytes, which have been written, and returns the memory to the pool.
    package mutating func didWrite(now: MonotonicTime) {
        if let memory = detachMemory(now: now) { pool.release(memory) }
    }

    /// Transfers ownership of the memory with the buffered bytes to the caller, who must return it to the pool.
    package mutating func detachMemory(now: MonotonicTime) -> UnsafeMutableRawBufferPointer? {
        // A fast body continues with a buffer of the same size.
        isFast = isFull && now.milliseconds(since: begun) <= Self.fastFill
        nextSize = count > 0 && count == memory?.count && isRecent(now) ? count : BufferPool.smallestSize
        defer {
            memory = nil
            count = 0
        }
        return memory
    }

    /// Discards the buffered bytes and returns the memory to the pool.
    package mutating func release() {
        if let memory { pool.release(memory) }
        memory = nil
        count = 0
    }
}
