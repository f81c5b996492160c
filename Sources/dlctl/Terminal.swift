import Glibc
import Synchronization

/// What is known of the terminal, and its cursor's return.
enum Terminal {
    /// What bars and marks may be drawn with.
    struct Style: Equatable {
        var colour: Bool
        var unicode: Bool
    }

    static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Whether the cursor can be moved, as `TERM` tells; bars need that.
    static func movesCursor(_ environment: [String: String]) -> Bool {
        guard let kind = environment["TERM"] else { return false }
        return !kind.isEmpty && kind != "dumb"
    }

    /// Columns and rows, or 80 by 24 where the terminal does not tell.
    static func size(_ descriptor: Int32) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// - Parameter environment: `NO_COLOR` (no-color.org) and `TERM=dumb` forbid colour; the locale says
    ///   whether the terminal reads UTF-8.
    static func style(_ environment: [String: String]) -> Style {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let locale = (value("LC_ALL") ?? value("LC_CTYPE") ?? value("LANG") ?? "").lowercased()
        return Style(
            colour: value("NO_COLOR") == nil && movesCursor(environment),
            unicode: locale.contains("utf-8") || locale.contains("utf8"))
    }

    // MARK: - The cursor and Ctrl-C

    private static let cursorIsHidden = Atomic(false)

    static func hideCursor() {
        cursorIsHidden.store(true, ordering: .sequentiallyConsistent)
        send("\u{1B}[?25l")
    }

    static func showCursor() {
        if cursorIsHidden.exchange(false, ordering: .sequentiallyConsistent) { send("\u{1B}[?25h") }
    }

    private static func send(_ sequence: StaticString) {
        // One write of static bytes: allowed in a signal handler (signal-safety(7)).
        _ = write(STDERR_FILENO, sequence.utf8Start, sequence.utf8CodeUnitCount)
    }

    /// Ctrl-C ends the program with 130, SIGTERM and SIGHUP as the shell would report them; the cursor comes back
    /// first. A reader that goes away is learnt from write(2).
    static func handleInterrupts() {
        // Makes the variable before a handler could be the first to ask for it.
        showCursor()
        _ = signal(SIGPIPE, SIG_IGN)  // fails for an unknown signal alone
        for number in [SIGINT, SIGTERM, SIGHUP] {
            // Fails for an unknown signal alone.
            _ = signal(number) { number in
                Terminal.showCursor()
                _exit(128 + number)
            }
        }
    }
}
