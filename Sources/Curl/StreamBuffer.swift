/// The bytes that a stream has yet to write, in one buffer of the loop's pool, which is held only while it is not
/// empty.
struct StreamBuffer: ~Copyable {
    /// The most bytes that are queued; bytes beyond that have to be offered again.
    static let limit = BufferPool.bufferSize

    private let pool: BufferPool
    private var memory: UnsafeMutableRawBufferPointer?
    private var head = 0
    private var tail = 0
    /// The number of bytes at the front that must be sent again unchanged, from the same address.
    private var frozen = 0

    init(pool: BufferPool) { self.pool = pool }

    // This thread may not be the pool's.
    deinit { if let memory { pool.abandon(memory) } }

    var count: Int { tail - head }
    var isEmpty: Bool { tail == head }

    /// - Returns: the number of `bytes` that were appended.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !bytes.isEmpty else { return 0 }
        let memory = self.memory ?? pool.acquire()
        self.memory = memory
        if frozen == 0, head > 0, memory.count - tail < bytes.count {
            memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[head..<tail]))
            (head, tail) = (0, tail - head)
        }
        let taken = min(bytes.count, memory.count - tail)
        UnsafeMutableRawBufferPointer(rebasing: memory[tail...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
        tail += taken
        return taken
    }

    /// Returns the bytes to write next; valid until the next call that changes the buffer.
    func front(atMost most: Int) -> UnsafeRawBufferPointer {
        guard let memory else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let length = frozen > 0 ? frozen : min(most, count)
        return UnsafeRawBufferPointer(rebasing: memory[head..<head + length])
    }

    /// Records that TLS has encrypted the front into a record and could not send all of it. The next write must pass
    /// the same bytes at the same address (SSL_write(3); libcurl does not set SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER).
    mutating func freeze(_ length: Int) { frozen = length }

    mutating func didSend(_ sent: Int) {
        frozen = 0
        head += min(sent, count)
        if isEmpty { release() }
    }

    /// Discards the remaining bytes and returns the memory to the pool. Call it on the loop's thread.
    mutating func release() {
        if let memory { pool.release(memory) }
        memory = nil
        (head, tail, frozen) = (0, 0, 0)
    }
}
