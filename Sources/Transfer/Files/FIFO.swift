/// A queue that does not move its elements each time the first is removed.
struct FIFO<Element> {
    private var storage: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == storage.count }
    var first: Element? { head < storage.count ? storage[head] : nil }
    var elements: some Sequence<Element> { storage[head...].lazy.compactMap { $0 } }

    mutating func append(_ element: Element) { storage.append(element) }

    mutating func removeFirst() {
        guard head < storage.count else { return }
        // Releases the element now, not when its storage is given up.
        storage[head] = nil
        head += 1
        if head == storage.count {
            storage.removeAll(keepingCapacity: storage.count <= 64)
            head = 0
        } else if head > 64, head > storage.count / 2 {
            storage.removeFirst(head)
            head = 0
        }
    }

    mutating func remove(where isOut: (Element) -> Bool) {
        storage = storage[head...].filter { $0.map { !isOut($0) } ?? false }
        head = 0
    }
}

extension FIFO: Sendable where Element: Sendable {}

/// A queue of bytes in one contiguous buffer, however small the appended pieces are.
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

    mutating func take(atMost most: Int) -> [UInt8] {
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
