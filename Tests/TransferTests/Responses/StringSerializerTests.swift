import FoundationEssentials
import TestSupport
import Testing

@testable import Transfer

@Suite("Bodies as text")
struct StringSerializerTests {
    private func head(_ charset: String?) -> ResponseHead {
        let line = "Content-Type: text/plain" + (charset.map { "; charset=\($0)" } ?? "") + "\r\n"
        return ResponseHead(status: 200, version: "", lines: Array(line.utf8))
    }

    private func text(
        _ bytes: [UInt8], _ charset: String? = nil, _ serializer: StringSerializer = StringSerializer()
    ) throws -> String {
        try serializer.serialize(Data(bytes), of: head(charset))
    }

    @Test(
        "the charset of the response is converted",
        arguments: [
            ("iso-8859-1", [0xE4, 0x80], "ä\u{80}"), ("Windows-1252", [0x80, 0x99, 0x9F, 0xE4], "€™Ÿä"),
            ("iso-8859-15", [0xA4, 0xE4], "€ä"), ("ISO-8859-2", [0xB3], "ł"), ("koi8-r", [0xD0, 0xD2], "пр"),
            ("windows-1251", [0xCF, 0xF0], "Пр"), ("Shift_JIS", [0x93, 0xFA, 0x87, 0x40], "日①"),
            ("EUC-JP", [0xC6, 0xFC], "日"), ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x1B, 0x28, 0x42], "日"),
            ("gb2312", [0xC8, 0xD5], "日"), ("Big5", [0xA4, 0xE9], "日"), ("euc-kr", [0xB0, 0xA1], "가"),
            ("macintosh", [0x8A], "ä"), ("IBM850", [0x84], "ä"), ("utf-32be", [0, 1, 0xF6, 0], "😀"),
            ("utf-16", [0xE4, 0], "ä"), ("utf-16le", [0xE4, 0], "ä"), ("utf-16be", [0, 0xE4], "ä"),
            ("utf8", [0xC3, 0xA4], "ä"), ("us-ascii", [0xC3, 0xA4], "ä"),
        ] as [(String, [UInt8], String)])
    func charsets(name: String, bytes: [UInt8], expected: String) throws {
        #expect(try text(bytes, name) == expected)
    }

    @Test("a byte order mark decides before the charset does, and is no part of the text")
    func byteOrderMarks() throws {
        #expect(try text([0xEF, 0xBB, 0xBF, 0xC3, 0xA4]) == "ä")
        #expect(try text([0xEF, 0xBB, 0xBF, 0xC3, 0xA4], "iso-8859-1") == "ä")
        #expect(try text([0xFF, 0xFE, 0xE4, 0], "utf-8") == "ä")
        #expect(try text([0xFE, 0xFF, 0, 0xE4], "utf-16le") == "ä")
        #expect(try text([0, 0, 0xFE, 0xFF, 0, 0, 0, 0xE4], "utf-32be") == "ä")
        #expect(try text([0xEF, 0xBB, 0xBF]).isEmpty)
    }

    @Test(
        "an encoding of the caller is used whatever the response says",
        arguments: [
            (.utf8, [0xEF, 0xBB, 0xBF, 0xC3, 0xA4]), (.isoLatin1, [0xE4]), (.windowsCP1252, [0xE4]),
            (.utf16, [0xFE, 0xFF, 0, 0xE4]), (.utf16, [0xE4, 0]), (.utf16LittleEndian, [0xFF, 0xFE, 0xE4, 0]),
            (.utf16BigEndian, [0, 0xE4]), (.utf32LittleEndian, [0xE4, 0, 0, 0]), (.isoLatin2, [0xE4]),
            (.windowsCP1250, [0xE4]), (.macOSRoman, [0x8A]),
        ] as [(String.Encoding, [UInt8])])
    func encodings(encoding: String.Encoding, bytes: [UInt8]) throws {
        #expect(try text(bytes, "koi8-r", StringSerializer(encoding: encoding)) == "ä")
    }

    @Test("a charset of the caller is used whatever the response says")
    func charsetOfTheCaller() throws {
        #expect(try text([0xD0], "utf-8", StringSerializer(charset: "KOI8-R")) == "п")
    }

    @Test(
        "an unknown charset is an error that names it",
        arguments: [
            "x-unknown", "", "//ignore", "utf-8//ignore", "../../tmp/evil", "a b", String(repeating: "x", count: 99),
        ])
    func unknownCharset(name: String) throws {
        let error = #expect(throws: TransferError.self) {
            try StringSerializer(charset: name).serialize(Data("a".utf8), of: nil)
        }
        #expect(error?.code == .serializationFailed)
        #expect(error?.message.contains("is unknown") == true)
        #expect(error?.message.contains(String(name.prefix(40))) == true)
        #expect((error?.message.utf8.count ?? 0) < 100)
    }

    @Test(
        "bytes that are invalid or incomplete are an error that tells where",
        arguments: [
            ("EUC-JP", [0x61, 0xFF], 1), ("shift_jis", [0x61, 0x62, 0x93], 2), ("utf-16le", [0x61, 0, 0x00, 0xD8], 2),
            ("utf-16be", [0, 0x61, 0], 2), ("utf-32le", [0, 0, 0x11, 0], 0),
        ] as [(String, [UInt8], Int)])
    func invalidBytes(name: String, bytes: [UInt8], offset: Int) throws {
        let error = #expect(throws: TransferError.self) { try text(bytes, name) }
        #expect(error?.code == .serializationFailed)
        #expect(error?.message.contains("byte \(offset) ") == true, "\(error?.message ?? "")")
        #expect(throws: TransferError.self) { try text([0xE4, 0x62]) }
        #expect(throws: TransferError.self) { try text([0xE4], nil, StringSerializer(encoding: .ascii)) }
        #expect(throws: TransferError.self) { try text([0x61], nil, StringSerializer(encoding: .symbol)) }
    }

    @Test("a text larger than the buffer of a conversion is converted as a whole")
    func largeText() throws {
        let letters = [UInt8](repeating: 0xE4, count: 100_001)
        #expect(try text(letters, "iso-8859-2") == String(repeating: "ä", count: 100_001))
        let wide = (0..<60_000).flatMap { _ in [0x93, 0xFA] as [UInt8] }
        #expect(try text(wide, "shift_jis").utf8.count == 180_000)
    }

    @Test("converters are released")
    func release() throws {
        for _ in 0..<2_000 { #expect(try text([0xB3], "iso-8859-2") == "ł") }
    }

    @Test("requests take an encoding", .timeLimit(.minutes(1)))
    func requests() async throws {
        let server = try RawServer([
            Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".utf8) + [0xB3, 0x61]
        ])
        let manager = try SessionManager(configuration: .test())
        #expect(try await manager.request(server.url()).string(encoding: .isoLatin2) == "ła")
        #expect(await manager.request(server.url()).serialized(using: StringSerializer()).error != nil)
        let heard = Notes<String>()
        let request = manager.request(server.url())
            .responseString(encoding: .isoLatin2, queue: .inline) { heard.add($0.value ?? "") }
        await request.completion()
        #expect(heard.all == ["ła"])
    }
}
