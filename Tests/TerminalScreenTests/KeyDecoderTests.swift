import Testing

@testable import TerminalScreen

@Suite struct KeyDecoderTests {
    private func keys(_ text: String) -> [Key] {
        var decoder = KeyDecoder()
        return decoder.feed(Array(text.utf8))
    }

    @Test("letters, controls and Enter are keys of their own")
    func plain() {
        #expect(
            keys("aZ \r\t\u{7F}\u{3}") == [
                .character("a"), .character("Z"), .character(" "), .enter, .tab, .backspace, .control("c"),
            ])
    }

    @Test(
        "arrows and their neighbours, in the forms of xterm, of the console and of the keypad",
        arguments: [
            ("\u{1B}[A", Key.up), ("\u{1B}OB", .down), ("\u{1B}[1;5C", .right), ("\u{1B}[D", .left),
            ("\u{1B}[H", .home),
            ("\u{1B}[4~", .end), ("\u{1B}[5~", .pageUp), ("\u{1B}[6;2~", .pageDown), ("\u{1B}[3~", .delete),
            ("\u{1B}[Z", .backTab), ("\u{1B}OP", .function(1)), ("\u{1B}[15~", .function(5)),
            ("\u{1B}[24~", .function(12)),
        ])
    func sequences(bytes: String, key: Key) {
        #expect(keys(bytes) == [key])
    }

    @Test("a sequence that arrives byte by byte is one key")
    func pieces() {
        var decoder = KeyDecoder()
        var found: [Key] = []
        for byte in Array("\u{1B}[1;5A长é".utf8) { found += decoder.feed([byte]) }
        #expect(found == [.up, .character("长"), .character("é")])
    }

    @Test("a lone ESC becomes Escape only when nothing follows; twice is twice")
    func escape() {
        var decoder = KeyDecoder()
        #expect(decoder.feed([0x1B]) == [] && decoder.awaitsSequence)
        #expect(decoder.endEscape() == [.escape] && !decoder.awaitsSequence)
        #expect(decoder.endEscape() == [])
        #expect(decoder.feed([0x1B, 0x1B]) == [.escape] && decoder.awaitsSequence)
        #expect(decoder.feed([UInt8(ascii: "x")]) == [.alt("x")])
    }

    @Test("no byte of an unknown sequence is a key")
    func unknown() {
        #expect(keys("\u{1B}[?25h\u{1B}[>0;95;0c\u{1B}[38;2;1mq") == [.character("q")])
        #expect(keys("\u{1B}[" + String(repeating: "1", count: 5_000) + "Aq") == [.character("q")])
    }

    @Test("pasted text is one key, whatever it contains, and its end may be split")
    func paste() {
        var decoder = KeyDecoder()
        var found: [Key] = []
        for byte in Array("\u{1B}[200~cy\r\u{1B}[A\u{1B}[201\u{1B}[201~q".utf8) { found += decoder.feed([byte]) }
        #expect(found == [.paste("cy\r\u{1B}[A\u{1B}[201"), .character("q")])
    }

    @Test("of a long paste the start is kept, and the memory is bounded")
    func longPaste() {
        let found = keys("\u{1B}[200~" + String(repeating: "x", count: 200_000) + "\u{1B}[201~")
        #expect(found == [.paste(String(repeating: "x", count: KeyDecoder.pasteLimit))])
    }

    @Test("any bytes leave the decoder usable")
    func noise() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var decoder = KeyDecoder()
            let bytes = (0..<500).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = decoder.feed(bytes)
            _ = decoder.feed(Array("\u{1B}[201~\u{18}\u{1B}".utf8))
            _ = decoder.endEscape()
            #expect(decoder.feed([UInt8(ascii: "q")]) == [.character("q")], "\(bytes)")
        }
    }

    @Test("bytes that are not UTF-8 are dropped, and what follows is kept")
    func broken() {
        var decoder = KeyDecoder()
        #expect(
            decoder.feed([0xFF, 0xC3, 0x28, 0xE2, 0x82, 0x61, 0xED, 0xA0, 0x80, 0x62]) == [
                .character("("), .character("a"), .character("b"),
            ])
    }
}
