import Testing

@testable import HTTPMessages

@Suite("Content-Range")
struct ContentRangeTests {
    @Test("bounds and total as told")
    func good() {
        #expect(ContentRange("bytes 0-499/1234")?.bounds == 0...499)
        #expect(ContentRange("bytes 0-499/1234")?.total == 1234)
        #expect(ContentRange("Bytes  7-7/8")?.bounds == 7...7)
        #expect(ContentRange("bytes 5-9/*")?.bounds == 5...9)
        #expect(ContentRange("bytes 5-9/*")?.total == nil)
        #expect(ContentRange("bytes */1234") != nil)
        #expect(ContentRange("bytes */1234")?.bounds == nil)
        #expect(ContentRange("bytes */1234")?.total == 1234)
    }

    @Test(
        "what contradicts itself is none",
        arguments: [
            "", "bytes", "bytes 0-499", "0-499/1234", "lines 0-1/2", "bytes */*", "bytes 5-4/10", "bytes 0-10/10",
            "bytes -5-9/10", "bytes 0-/10", "bytes +0-9/10", "bytes 0-9/10/10", "bytes 0-9 /10", "bytes 0-9/x",
            "bytes 0-99999999999999999999/*", "bytes 0-9223372036854775807/*", "bytes ٠-٩/١٠",
        ])
    func bad(text: String) {
        #expect(ContentRange(text) == nil)
    }
}
