import Testing

@testable import Transfer

@Suite("What file servers say")
struct RemoteFactsTests {
    @Test(
        "a download repeats a little where size and time are known, more without a time, and begins anew otherwise")
    func offset() throws {
        func offset(_ size: Int64?, _ time: Int64?, have: Int64, isReporting: Bool = true) throws -> Int64? {
            try RemoteFacts(size: size, time: time).offset(have: have) {
                isReporting ? max(0, have - Int64($0.width)) : 0
            }
        }
        #expect(try offset(1_000_000, 5, have: 500_000) == 500_000 - 8_192)
        #expect(try offset(1_000_000, nil, have: 500_000) == 500_000 - 262_144)
        #expect(try offset(1_000_000, nil, have: 50) == nil)
        #expect(try offset(nil, 5, have: 500) == nil)
        #expect(try offset(500, 5, have: 500) == nil)
        #expect(try offset(1000, 5, have: 0) == 0)
        // A small part is compared completely; a repetitive overlap proves nothing, and the time decides.
        #expect(try offset(1000, 5, have: 500) == 0)
        #expect(try offset(1_000_000, 5, have: 500_000, isReporting: false) == 500_000)
        #expect(try offset(1_000_000, nil, have: 500_000, isReporting: false) == nil)
    }

    @Test("only the same size and the same time are of one version")
    func difference() {
        let facts = RemoteFacts(size: 10, time: 5)
        #expect(facts.difference(to: facts, isCompared: false) == nil)
        for other in [RemoteFacts(size: 11, time: 5), RemoteFacts(size: 10, time: 6), RemoteFacts(time: 5)] {
            #expect(facts.difference(to: other, isCompared: false) != nil)
            #expect(facts.difference(to: other, isCompared: true) != nil)
        }
        let timeless = RemoteFacts(size: 10)
        #expect(facts.difference(to: timeless, isCompared: false) != nil)
        #expect(timeless.difference(to: facts, isCompared: false) != nil)
        #expect(timeless.difference(to: facts, isCompared: true) == nil)
        #expect(RemoteFacts().difference(to: RemoteFacts(), isCompared: true) != nil)
    }

    @Test(
        "they survive being resume data",
        arguments: [nil, -2_077_704_000, 0, 1_709_208_000, 253_402_300_799] as [Int64?])
    func resumeData(time: Int64?) {
        let facts = RemoteFacts(size: 7, time: time)
        #expect(RemoteFacts(facts.version(of: "ftp://h/a")) == facts)
    }

    @Test(
        "a date is written as HTTP has it",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (.min, "Sat, 01 Jan 1583 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (-2_077_704_000, "Mon, 29 Feb 1904 12:00:00 GMT"),
        ] as [(Int64, String)])
    func date(seconds: Int64, text: String) {
        #expect(HTTPDate.text(seconds) == text)
    }

    @Test("of a reply, the code and the text count, without what a terminal would obey")
    func replies() {
        let reply = FTPReply("550 No \u{1B}[31msuch file.\r\n".utf8)
        #expect(reply?.code == 550)
        #expect(reply?.text == "No [31msuch file.")
        #expect(FTPReply("213 1234\r\n".utf8)?.size == 1234)
        #expect(FTPReply("213 99999999999999999999\r\n".utf8)?.size == nil)
        #expect(FTPReply("226 1234\r\n".utf8)?.size == nil)
        #expect(FTPReply("220-more follows\r\n".utf8) == nil)
        #expect(FTPReply(" 22".utf8) == nil)
        #expect(FTPReply("".utf8) == nil)
        #expect(FTPReply(("200 " + String(repeating: "x", count: 9999)).utf8)?.text.utf8.count == 200)
    }
}
