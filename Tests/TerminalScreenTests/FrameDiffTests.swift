import Testing

@testable import TerminalScreen

@Suite struct FrameDiffTests {
    private let size = ScreenSize(columns: 20, rows: 3)

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test("the first picture clears the screen; the same again writes nothing")
    func first() {
        var diff = FrameDiff(allowsColour: true)
        let frame = Frame(lines: [StyledLine("a"), StyledLine("b")])
        let bytes = text(diff.update(to: frame, size: size))
        #expect(bytes == "\u{18}\u{1B}[0m\u{1B}[H\u{1B}[2J\u{1B}[1;1H\u{1B}[Ka\u{1B}[2;1H\u{1B}[Kb\u{1B}[?25l")
        #expect(diff.update(to: frame, size: size).isEmpty)
    }

    @Test("only the lines that changed are written, and lines that vanished are erased")
    func changes() {
        var diff = FrameDiff(allowsColour: true)
        _ = diff.update(to: Frame(lines: [StyledLine("a"), StyledLine("b"), StyledLine("c")]), size: size)
        let bytes = text(diff.update(to: Frame(lines: [StyledLine("a"), StyledLine("x")]), size: size))
        #expect(bytes == "\u{1B}[2;1H\u{1B}[Kx\u{1B}[3;1H\u{1B}[K")
    }

    @Test("a new size, and a screen of unknown content, are drawn as a whole; lines below the screen are dropped")
    func resized() {
        var diff = FrameDiff(allowsColour: true)
        let frame = Frame(lines: [StyledLine("a"), StyledLine("b")])
        _ = diff.update(to: frame, size: size)
        let small = text(diff.update(to: frame, size: ScreenSize(columns: 5, rows: 1)))
        #expect(small.contains("\u{1B}[2J") && small.contains("Ka") && !small.contains("Kb"))
        diff.invalidate()
        #expect(text(diff.update(to: frame, size: ScreenSize(columns: 5, rows: 1))).contains("\u{1B}[2J"))
        #expect(!diff.update(to: frame, size: ScreenSize(columns: 0, rows: 0)).isEmpty)
    }

    @Test("the cursor is put into the prompt, within the screen, and hidden without one")
    func cursor() {
        var diff = FrameDiff(allowsColour: true)
        var frame = Frame(lines: [StyledLine("a")], cursor: Frame.Cursor(column: 99, row: 2))
        #expect(text(diff.update(to: frame, size: size)).hasSuffix("\u{1B}[3;20H\u{1B}[?25h"))
        #expect(diff.update(to: frame, size: size).isEmpty)
        frame.cursor = nil
        #expect(text(diff.update(to: frame, size: size)) == "\u{1B}[?25l")
    }

    @Test("styles are SGR sequences; without colour, colours and dim text are left out")
    func styles() {
        var line = StyledLine("a", .colour(.red))
        line.append("b", .dim)
        line.append("c", .bold)
        func text(_ line: StyledLine, allowsColour: Bool = false) -> String {
            self.text(line.encoded(allowsColour: allowsColour, columns: 9))
        }
        #expect(text(line, allowsColour: true) == "\u{1B}[31ma\u{1B}[0m\u{1B}[2mb\u{1B}[0m\u{1B}[1mc\u{1B}[0m")
        #expect(text(line) == "ab\u{1B}[1mc\u{1B}[0m")
        line.append("d", at: 7)
        #expect(text(line) == "ab\u{1B}[1mc\u{1B}[0m\u{1B}[8Gd")
        #expect(text(line.reversed).hasPrefix("\u{1B}[1;7m         \u{1B}[0m\r\u{1B}[1;7ma\u{1B}[0m"))
    }

    @Test("no control character of a text reaches the terminal")
    func controls() {
        #expect(text(StyledLine("a\u{1B}[2J\u{9B}\n\u{7F}é").encoded(allowsColour: true, columns: 9)) == "a?[2J???é")
    }
}
