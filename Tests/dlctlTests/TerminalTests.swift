import Testing

@testable import dlctl

@Suite struct TerminalTests {
    @Test("colour is left out for NO_COLOR, for a dumb terminal and for none")
    func colour() {
        #expect(Terminal.style(["TERM": "xterm"]).colour)
        #expect(!Terminal.style(["TERM": "xterm", "NO_COLOR": "1"]).colour)
        #expect(Terminal.style(["TERM": "xterm", "NO_COLOR": ""]).colour)
        #expect(!Terminal.style(["TERM": "dumb"]).colour)
        #expect(!Terminal.style([:]).colour)
    }

    @Test("no bars are drawn on a terminal that cannot move its cursor, or does not say what it is")
    func cursor() {
        #expect(Terminal.movesCursor(["TERM": "xterm"]))
        #expect(Terminal.movesCursor(["TERM": "vt100", "NO_COLOR": "1"]))
        #expect(!Terminal.movesCursor(["TERM": "dumb"]))
        #expect(!Terminal.movesCursor(["TERM": ""]))
        #expect(!Terminal.movesCursor([:]))
    }

    @Test("a terminal that cuts lines off in place of wrapping them is known by its name")
    func reflow() {
        #expect(Terminal.reflows(["TERM": "xterm-256color"]))
        #expect(Terminal.reflows(["TERM": "screen-256color", "TMUX": "/tmp/tmux,1,0"]))
        #expect(!Terminal.reflows(["TERM": "screen"]))
        #expect(!Terminal.reflows(["TERM": "linux"]))
    }

    @Test("lines that a narrower terminal wrapped are drawn over with all their rows")
    func rows() {
        #expect(ProgressView.rows(of: [79, 79, 6], columns: 80) == 3)
        #expect(ProgressView.rows(of: [79, 79, 6], columns: 40) == 5)
        #expect(ProgressView.rows(of: [80, 40, 0], columns: 40) == 4)
        #expect(ProgressView.rows(of: [79], columns: 200) == 1)
        #expect(ProgressView.rows(of: [79, 79], columns: .max) == 2)
        #expect(ProgressView.rows(of: [3], columns: 0) == 3)
        #expect(ProgressView.rows(of: [], columns: 80) == 0)
    }

    @Test("the locale says whether UTF-8 may be drawn, LC_ALL before LC_CTYPE before LANG")
    func unicode() {
        #expect(Terminal.style(["LANG": "de_DE.UTF-8"]).unicode)
        #expect(Terminal.style(["LANG": "C.utf8"]).unicode)
        #expect(!Terminal.style(["LANG": "de_DE.UTF-8", "LC_ALL": "C"]).unicode)
        #expect(!Terminal.style([:]).unicode)
    }
}
