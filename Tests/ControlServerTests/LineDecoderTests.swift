import NIOCore
import Testing

@testable import ControlServer

@Suite("Cutting bytes into lines")
struct LineDecoderTests {
    private func items(_ decoder: inout LineDecoder) -> [String] {
        var items: [String] = []
        while let item = decoder.next() {
            switch item {
            case .line(let line): items.append(String(buffer: line))
            case .tooLong: items.append("TOO LONG")
            }
        }
        return items
    }

    @Test("lines come out the same wherever the bytes were cut")
    func anyCut() {
        let text = "one\n\ntwo\r\n\r\nthree\rfour\nrest"
        for size in 1...text.utf8.count {
            var decoder = LineDecoder(limit: 16)
            var found: [String] = []
            var bytes = ByteBuffer(string: text)
            while bytes.readableBytes > 0 {
                guard let piece = bytes.readSlice(length: min(size, bytes.readableBytes)) else { break }
                decoder.append(piece)
                found += items(&decoder)
            }
            #expect(found == ["one", "", "two", "", "three\rfour"], "pieces of \(size)")
            #expect(decoder.growingLine == 5)
            #expect(decoder.count == 4)
        }
    }

    @Test("a line of exactly the limit is taken")
    func atLimit() {
        var decoder = LineDecoder(limit: 4)
        decoder.append(ByteBuffer(string: "1234\n"))
        #expect(items(&decoder) == ["1234"])
        decoder.append(ByteBuffer(string: "1234"))
        #expect(decoder.next() == nil)
        #expect(decoder.growingLine == 1)
        decoder.append(ByteBuffer(string: "\n"))
        #expect(items(&decoder) == ["1234"])
        #expect(decoder.growingLine == nil)
    }

    @Test("half a line is known by its number, so that the next one is told from it")
    func growingLine() {
        var decoder = LineDecoder()
        #expect(decoder.growingLine == nil)
        decoder.append(ByteBuffer(string: "a"))
        #expect(decoder.growingLine == 0)
        decoder.append(ByteBuffer(string: "b"))
        #expect(decoder.growingLine == 0)
        decoder.append(ByteBuffer(string: "\nc"))
        #expect(decoder.growingLine == nil, "a whole line waits before it")
        #expect(items(&decoder) == ["ab"])
        #expect(decoder.growingLine == 1)
        decoder.append(ByteBuffer(string: "\n"))
        #expect(items(&decoder) == ["c"])
        #expect(decoder.growingLine == nil)
    }

    @Test("a longer line is told once, whether its LF has come or not, and nothing comes after it")
    func overLimit() {
        for text in ["12345\nnext\n", "12345", "123456789"] {
            var decoder = LineDecoder(limit: 4)
            decoder.append(ByteBuffer(string: text))
            #expect(decoder.hasItem)
            #expect(items(&decoder) == ["TOO LONG"])
            decoder.append(ByteBuffer(string: "more\n"))
            #expect(items(&decoder).isEmpty)
            #expect(decoder.count == 0)
        }
    }

    @Test("lines before one that is too long are given out first")
    func linesBeforeLong() {
        var decoder = LineDecoder(limit: 4)
        decoder.append(ByteBuffer(string: "a\nb\n12345"))
        #expect(items(&decoder) == ["a", "b", "TOO LONG"])
    }

    @Test("what has been given out takes no room")
    func releases() {
        var decoder = LineDecoder()
        let line = ByteBuffer(repeating: UInt8(ascii: "x"), count: 1000)
        // The buffer is never empty, so that it is never simply discarded.
        decoder.append(ByteBuffer(string: "begin"))
        for _ in 0..<10_000 {
            decoder.append(ByteBuffer(string: "\n"))
            decoder.append(line)
            while decoder.next() != nil {}
        }
        #expect(decoder.count == 1000)
        #expect(decoder.capacity < 16_384)
    }
}
