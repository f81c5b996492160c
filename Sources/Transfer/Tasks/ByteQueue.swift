/// A queue of bytes in one contiguous buffer, however small the appended pieces are. Unlike a `Deque`, it can give all
/// of its bytes away without copying them.
struct ByteQueue {
    private var storage: [UInt8] = []
    private var head = 0

    var count: Int { storage.count - head }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if head > 0, head >= storage.count / 2 {
            storage.removeFirst(head)
            head = 0
        }
        storage += bytes
    }

    mutating func removeFirst(atMost most: Int) -> [UInt8] {
        let size = min(most, count)
        guard size > 0 else { return [] }
        if size == count {
            defer { removeAll() }
            return head == 0 ? storage : Array(storage[head...])
        }
        defer { head += size }
        return Array(storage[head..<head + size])
    }

    mutating func removeAll() {
        storage = []
        head = 0
    }
}
