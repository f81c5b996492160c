import Testing

@testable import Curl

@Suite("Buffers")
struct BufferPoolTests {
    @Test("a buffer that was given back is the next to be taken; two that are out are two")
    func reuse() {
        let pool = BufferPool()
        let first = pool.take()
        let second = pool.take()
        #expect(first.count == BufferPool.bufferSize && second.count == BufferPool.bufferSize)
        #expect(first.baseAddress != second.baseAddress)
        pool.give(first)
        #expect(pool.take().baseAddress == first.baseAddress)
        pool.give(first)
        pool.give(second)
    }

    @Test("more buffers than are kept can be out at once and come back")
    func many() {
        let pool = BufferPool()
        let buffers = (0..<100).map { _ in pool.take() }
        #expect(Set(buffers.map { UInt(bitPattern: $0.baseAddress) }).count == 100)
        for buffer in buffers { pool.give(buffer) }
        let again = pool.take()
        again[0] = 1
        again[again.count - 1] = 1
        pool.give(again)
    }
}
