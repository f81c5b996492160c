import Testing

@testable import Curl

@Suite("What is gathered of a body")
struct BodyBufferTests {
    private let pool = BufferPool()

    /// Appends `pieces` of `length` bytes, one every `milliseconds`, and flushes the buffer whenever it must be
    /// written.
    ///
    /// - Returns: the lengths of the blocks written, and the peak memory held.
    private func gather(_ pieces: Int, of length: Int, every milliseconds: Int64) -> (blocks: [Int], most: Int) {
        var buffer = BodyBuffer(pool: pool)
        var (blocks, most) = ([Int](), 0)
        var now = MonotonicTime(nanoseconds: 1)
        let piece = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        for _ in 0..<pieces {
            now = now.advanced(milliseconds: milliseconds)
            piece.withUnsafeBytes { piece in
                var rest = piece
                while !rest.isEmpty {
                    let taken = buffer.append(rest, now: now)
                    most = max(most, buffer.size)
                    rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                    if taken == 0 || buffer.isFull {
                        blocks.append(buffer.count)
                        buffer.didWrite(now: now)
                    }
                }
            }
        }
        if buffer.count > 0 { blocks.append(buffer.count) }
        buffer.release()
        return (blocks, most)
    }

    @Test("a slow body never holds more than the smallest buffer, and is written in blocks of that size")
    func slow() {
        let (blocks, most) = gather(100, of: 512, every: 100)
        #expect(most == BufferPool.smallestSize)
        #expect(blocks.dropLast().allSatisfy { $0 == BufferPool.smallestSize })
        #expect(blocks.reduce(0, +) == 100 * 512)
    }

    @Test("pieces that do not fit the smallest buffer evenly fill it all the same")
    func uneven() {
        let blocks = gather(100, of: 1448, every: 200).blocks
        #expect(blocks.dropLast().allSatisfy { $0 == BufferPool.smallestSize })
        #expect(blocks.reduce(0, +) == 100 * 1448)
    }

    @Test("a fast body is written in blocks of the largest size")
    func fast() {
        let blocks = gather(1000, of: 16_384, every: 1).blocks
        #expect(blocks.dropLast().allSatisfy { $0 == BodyBuffer.largestSize })
        #expect(blocks.reduce(0, +) == 1000 * 16_384)
    }

    @Test("a body of a middling rate gets a buffer between the two")
    func middling() {
        // 4096 bytes every 31 ms, which is about 128 KiB/s.
        let most = gather(1000, of: 4096, every: 31).most
        #expect(most > BufferPool.smallestSize && most < BodyBuffer.largestSize)
    }

    @Test(
        "a slow body that comes in bursts holds the smallest buffer once its rate is known",
        arguments: [512, 4_096, 5_000, 8_192, 16_384, 60_000], [false, true])
    func bursts(bytesPerSecond: Int, isCrowded: Bool) {
        var buffer = BodyBuffer(pool: pool)
        var now = MonotonicTime(nanoseconds: 1)
        let burst = [UInt8](repeating: 7, count: bytesPerSecond)
        for second in 0..<60 {
            burst.withUnsafeBytes { burst in
                // Pieces as large as a small receive buffer of libcurl.
                var rest = burst
                while !rest.isEmpty {
                    let piece = UnsafeRawBufferPointer(rebasing: rest[..<min(4_096, rest.count)])
                    let taken = buffer.append(piece, now: now, isCrowded: isCrowded)
                    if isCrowded { #expect(buffer.size <= BufferPool.smallestSize) }
                    rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                    if taken == 0 { buffer.didWrite(now: now) }
                }
            }
            #expect(second < 2 || buffer.size <= BufferPool.smallestSize)
            now = now.advanced(milliseconds: 1_000)
        }
        buffer.release()
    }

    @Test(
        "a slow body that becomes fast is written in blocks of the largest size after 1 MiB", arguments: [false, true])
    func speedsUp(isCrowded: Bool) {
        var buffer = BodyBuffer(pool: pool)
        var now = MonotonicTime(nanoseconds: 1)
        let piece = [UInt8](repeating: 7, count: 16_384)
        func take(_ count: Int) -> [Int] {
            var blocks: [Int] = []
            piece.withUnsafeBytes { piece in
                var rest = UnsafeRawBufferPointer(rebasing: piece[..<count])
                while !rest.isEmpty {
                    let taken = buffer.append(rest, now: now, isCrowded: isCrowded)
                    rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                    if taken == 0 || buffer.isFull {
                        blocks.append(buffer.count)
                        buffer.didWrite(now: now)
                    }
                }
            }
            return blocks
        }
        for _ in 0..<50 {
            _ = take(100)
            now = now.advanced(milliseconds: 100)
        }
        var blocks: [Int] = []
        for _ in 0..<1_000 {
            blocks += take(piece.count)
            now = now.advanced(milliseconds: 1)
        }
        let first = blocks.firstIndex(of: BodyBuffer.largestSize) ?? blocks.count
        #expect(blocks[..<first].reduce(0, +) <= 1 << 20 + 2 * BodyBuffer.largestSize)
        #expect(first < 64)
        #expect(blocks[first...].allSatisfy { $0 == BodyBuffer.largestSize })
        buffer.release()
    }

    @Test(
        "a small body that comes at once is one block", arguments: [1, 4096, 16_384, 100_000, BodyBuffer.largestSize])
    func small(length: Int) {
        #expect(gather((length + 8191) / 8192, of: min(length, 8192), every: 0).blocks.count == 1)
    }

    @Test("a body that was fast and is slow now is slow")
    func slowsDown() {
        var buffer = BodyBuffer(pool: pool)
        var now = MonotonicTime(nanoseconds: 1)
        let piece = [UInt8](repeating: 7, count: 128 * 1024)
        piece.withUnsafeBytes { piece in
            while !buffer.isFull { _ = buffer.append(piece, now: now) }
            buffer.didWrite(now: now)
            _ = buffer.append(UnsafeRawBufferPointer(rebasing: piece[..<100]), now: now)
            #expect(buffer.size == BodyBuffer.largestSize)
            now = now.advanced(milliseconds: 5_000)
            buffer.didWrite(now: now)
            _ = buffer.append(UnsafeRawBufferPointer(rebasing: piece[..<100]), now: now)
        }
        #expect(buffer.size == BufferPool.smallestSize)
        buffer.release()
    }

    @Test("what came in a burst goes as soon as more comes, however slowly")
    func burst() {
        var buffer = BodyBuffer(pool: pool)
        var now = MonotonicTime(nanoseconds: 1)
        let burst = [UInt8](repeating: 7, count: 20_000)
        #expect(burst.withUnsafeBytes { buffer.append($0, now: now) } == 20_000)
        now = now.advanced(milliseconds: 1_000)
        #expect(burst.withUnsafeBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0[..<1]), now: now) } == 0)
        buffer.didWrite(now: now)
        #expect(burst.withUnsafeBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0[..<1]), now: now) } == 1)
        #expect(buffer.size == BufferPool.smallestSize)
        buffer.release()
    }

    @Test("what was gathered comes out as it went in, however often it moved to a larger buffer")
    func content() {
        var buffer = BodyBuffer(pool: pool)
        let now = MonotonicTime(nanoseconds: 1)
        let content = (0..<120_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        content.withUnsafeBytes { content in
            var offset = 0
            while offset < content.count {
                let end = min(content.count, offset + 1500)
                offset += buffer.append(UnsafeRawBufferPointer(rebasing: content[offset..<end]), now: now)
            }
        }
        #expect(buffer.bytes.elementsEqual(content))
        buffer.release()
    }

    @Test("it holds no memory where it holds no bytes")
    func empty() {
        var buffer = BodyBuffer(pool: pool)
        let now = MonotonicTime(nanoseconds: 1)
        #expect(buffer.size == 0 && buffer.bytes.isEmpty)
        for end in 0..<3 {
            _ = [UInt8](repeating: 1, count: 10).withUnsafeBytes { buffer.append($0, now: now) }
            #expect(buffer.count == 10)
            switch end {
            case 0: buffer.didWrite(now: now)
            case 1: buffer.release()
            default:
                let memory = buffer.detachMemory(now: now)
                #expect(memory?.count == BufferPool.smallestSize)
                if let memory { pool.release(memory) }
            }
            #expect(buffer.size == 0 && buffer.count == 0)
        }
    }
}
