/// What a stream has yet to write: one buffer of the loop's pool, held only while there is something in it.
struct StreamBuffer: ~Copyable {
    /// The most that is queued, in bytes; what is beyond has to be offered again.
    static let limit = BufferPool.bufferSize

    private let pool: BufferPool
    private var memory: UnsafeMutableRawBufferPointer?
    private var head = 0
    private var tail = 0
    /// How many bytes at the front must come again as they are, at the same address.
    private var frozen = 0

    init(pool: BufferPool) { self.pool = pool }

    // Not given back: the pool belongs to a thread that need not be this one.
    deinit { memory?.deallocate() }

    var count: Int { tail - head }
    var isEmpty: Bool { tail == head }

    /// - Returns: how many of `bytes` were taken.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !bytes.isEmpty else { return 0 }
        let memory = self.memory ?? pool.take()
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

    /// What to write next; good until the next call that changes the buffer.
    func front(atMost most: Int) -> UnsafeRawBufferPointer {
        guard let memory else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let length = frozen > 0 ? frozen : min(most, count)
        return UnsafeRawBufferPointer(rebasing: memory[head..<head + length])
    }

    /// TLS has made a record of the front and could not send all of it: the next call must bring the same bytes at
    /// the same address (SSL_write(3); libcurl does not set SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER).
    mutating func freeze(_ length: Int) { frozen = length }

    mutating func didSend(_ sent: Int) {
        frozen = 0
        head += min(sent, count)
        if isEmpty { release() }
    }

    /// Forgets what is left and gives the memory back; on the loop's thread.
    mutating func release() {
        if let memory { pool.give(memory) }
        memory = nil
        (head, tail, frozen) = (0, 0, 0)
    }
}
