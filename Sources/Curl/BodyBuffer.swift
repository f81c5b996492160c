/// The gathered bytes of a body, in one buffer of the loop's pool. The buffer is held only while it has bytes, and is as
/// large as the body is fast.
///
/// A buffer that fills within a moment makes way for a larger one, and a larger one goes once it has been filled for so
/// long. After its first second a body gets no larger buffer than its rate fills within a moment: a slow body that comes
/// in bursts holds the smallest between them. Where many bodies arrive this holds from the first byte on: thousands of
/// first bursts would leave thousands of holes in the heap.
package struct BodyBuffer: ~Copyable {
    private let pool: BufferPool
    private var memory: UnsafeMutableRawBufferPointer?
    /// Bytes that are there.
    package private(set) var count = 0
    /// When the first of them came.
    private var begun = MonotonicTime(nanoseconds: 0)
    /// The size of the next buffer, unless more bytes come at once.
    private var nextSize = BufferPool.smallestSize
    private var pace = BodyPace()

    /// Milliseconds within which a buffer has to fill for the body to get a larger one, and for which a larger one is
    /// filled.
    private static let moment: Int64 = 250

    package init(pool: BufferPool) { self.pool = pool }

    // Not given back: the pool belongs to a thread that need not be this one.
    deinit { memory?.deallocate() }

    /// Whether it has no room, and can grow no further.
    package var isFull: Bool { count == BufferPool.bufferSize }

    /// Bytes of memory that it holds.
    var size: Int { memory?.count ?? 0 }

    /// The gathered bytes, in the order in which they came; good until the next call that changes the buffer.
    package var bytes: UnsafeRawBufferPointer {
        guard let memory else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: memory[..<count])
    }

    /// - Parameter isCrowded: many other bodies arrive meanwhile.
    /// - Returns: how many of `bytes` were taken; 0: what is there has to go first.
    package mutating func append(_ bytes: UnsafeRawBufferPointer, now: MonotonicTime, isCrowded: Bool = false) -> Int {
        let largest =
            isCrowded || pace.isKnown ? BufferPool.largestSize(within: pace.quarter) : BufferPool.bufferSize
        guard !bytes.isEmpty, let memory = room(for: bytes.count, within: largest, now) else { return 0 }
        let taken = min(bytes.count, memory.count - count)
        UnsafeMutableRawBufferPointer(rebasing: memory[count..<count + taken])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
        count += taken
        pace.note(taken, now: now)
        return taken
    }

    /// A buffer with room for `length` more bytes, or for some of them where no buffer has that.
    ///
    /// The smallest is filled to its end however slowly they come: blocks that end where a page does cost the file
    /// system least.
    ///
    /// - Parameter largest: the largest buffer to take.
    /// - Returns: `nil` where there is no room.
    private mutating func room(
        for length: Int, within largest: Int, _ now: MonotonicTime
    ) -> UnsafeMutableRawBufferPointer? {
        guard let memory else {
            let first = pool.take(min(max(length, nextSize), largest))
            memory = first
            begun = now
            return first
        }
        if isRecent(now), length > memory.count - count, memory.count < largest {
            let larger = pool.take(min(count + length, largest))
            larger.copyMemory(from: bytes)
            pool.give(memory)
            self.memory = larger
            return larger
        }
        let mayFill = isRecent(now) || memory.count == BufferPool.smallestSize
        return mayFill && count < memory.count ? memory : nil
    }

    private func isRecent(_ now: MonotonicTime) -> Bool { now.milliseconds(since: begun) < Self.moment }

    /// Forgets the gathered bytes, which have been written.
    package mutating func didWrite(now: MonotonicTime) {
        if let memory = take(now: now) { pool.give(memory) }
    }

    /// Hands over the buffer with what is there; it is to be given back to the pool.
    package mutating func take(now: MonotonicTime) -> UnsafeMutableRawBufferPointer? {
        // A fast body goes on with a buffer of that size.
        nextSize = count > 0 && count == memory?.count && isRecent(now) ? count : BufferPool.smallestSize
        defer {
            memory = nil
            count = 0
        }
        return memory
    }

    /// Forgets what is there and gives the memory back.
    package mutating func release() {
        if let memory { pool.give(memory) }
        memory = nil
        count = 0
    }
}
