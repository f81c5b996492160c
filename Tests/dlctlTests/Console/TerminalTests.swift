import TestSupport
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

    @Test("a drawing begins over the one before it, and at the top of a terminal that was resized")
    func start() {
        #expect(ProgressView.start(over: 0, rows: 24, isResized: false) == "")
        #expect(ProgressView.start(over: 3, rows: 24, isResized: false) == "\u{1B}[3A\r")
        #expect(ProgressView.start(over: 30, rows: 24, isResized: false) == "\u{1B}[23A\r")
        #expect(ProgressView.start(over: 3, rows: 24, isResized: true) == "\u{1B}[H\u{1B}[2J")
    }

    @Test("a password is asked for without echo, which returns at Enter and at Ctrl-C", .timeLimit(.minutes(1)))
    func secret() async throws {
        let words = ["--socket", "/none", "add", "--user", "me", "--password-file", "-", "http://h/a"]
        for (typed, status) in [("geheim\n", 69), ("gehe\u{3}", 130)] as [(String, Int32)] {
            let terminal = try PseudoTerminal([DaemonProcess.program("dlctl")] + words)
            try await terminal.wait(for: "--password-file (the input is not shown): ")
            try await eventually(that: "the echo is off") { !terminal.isCooked }
            terminal.type(typed)
            #expect(try await terminal.child.wait() == .exited(status))
            #expect(terminal.isCooked && !terminal.output.contains("gehe"), "\(terminal.output)")
        }
    }

    @Test("the locale says whether UTF-8 may be drawn, LC_ALL before LC_CTYPE before LANG")
    func unicode() {
        #expect(Terminal.style(["LANG": "de_DE.UTF-8"]).unicode)
        #expect(Terminal.style(["LANG": "C.utf8"]).unicode)
        #expect(!Terminal.style(["LANG": "de_DE.UTF-8", "LC_ALL": "C"]).unicode)
        #expect(!Terminal.style([:]).unicode)
    }
}
