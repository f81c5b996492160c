import Glibc
import Synchronization

/// The properties of the terminal, and the restoration of its cursor and echo on exit.
enum Terminal {
    /// The features that bars and marks may use.
    struct Style: Equatable {
        var colour: Bool
        var unicode: Bool
    }

    static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Returns whether the cursor can be moved according to `TERM`, which bars require.
    static func movesCursor(_ environment: [String: String]) -> Bool {
        guard let kind = environment["TERM"] else { return false }
        return !kind.isEmpty && kind != "dumb"
    }

    /// Returns the columns and rows, or 80 by 24 if the terminal does not report its size.
    static func size(_ descriptor: Int32) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Returns the style that the environment allows.
    ///
    /// - Parameter environment: `NO_COLOR` (no-color.org) and `TERM=dumb` disable colour; the locale determines whether
    ///   the terminal supports UTF-8.
    static func style(_ environment: [String: String]) -> Style {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let locale = (value("LC_ALL") ?? value("LC_CTYPE") ?? value("LANG") ?? "").lowercased()
        return Style(
            colour: value("NO_COLOR") == nil && movesCursor(environment),
            unicode: locale.contains("utf-8") || locale.contains("utf8"))
    }

    // MARK: - The cursor and the farewell

    private static let cursorIsHidden = Atomic(false)

    static func hideCursor() {
        cursorIsHidden.store(true, ordering: .sequentiallyConsistent)
        send("\u{1B}[?25l")
    }

    static func showCursor() {
        if cursorIsHidden.exchange(false, ordering: .sequentiallyConsistent) { send("\u{1B}[?25h") }
    }

    /// The address of the text to write when a signal ends the program, and its length. A signal handler may not allocate
    /// memory.
    private static let farewell = Atomic<UInt>(0)
    private static let farewellLength = Atomic(0)

    /// Sets the text that is written to standard error when a signal ends the program.
    static func setFarewell(_ text: String) {
        // The memory is never freed, because the handler may read it at any time; the text is set once for a command.
        let bytes = Array(text.utf8)
        let copy = UnsafeMutableRawPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
        bytes.withUnsafeBytes { copy.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(copy), byteCount: $0.count) }
        farewellLength.store(0, ordering: .sequentiallyConsistent)
        farewell.store(UInt(bitPattern: copy), ordering: .sequentiallyConsistent)
        farewellLength.store(bytes.count, ordering: .sequentiallyConsistent)
    }

    private static func sendFarewell() {
        let count = farewellLength.load(ordering: .sequentiallyConsistent)
        guard count > 0, let text = UnsafeRawPointer(bitPattern: farewell.load(ordering: .sequentiallyConsistent))
        else { return }
        _ = write(STDERR_FILENO, text, count)  // the program ends in any case
    }

    private static func send(_ sequence: StaticString) {
        // This is a single write of static bytes, which is allowed in a signal handler (signal-safety(7)).
        _ = write(STDERR_FILENO, sequence.utf8Start, sequence.utf8CodeUnitCount)
    }

    // MARK: - Secrets

    private static let echoIsOff = Atomic(false)

    /// Asks for one line on the terminal, without showing it. The echo returns also where a signal ends the program.
    ///
    /// - Returns: the bytes without the line end, and none at the end of input.
    static func secret(_ prompt: String) -> [UInt8] {
        // These signals would leave the terminal without echo to the shell.
        let ignored = [SIGQUIT, SIGTSTP].map { ($0, signal($0, SIG_IGN)) }
        let errors = Output(STDERR_FILENO)
        errors.text(prompt)
        errors.flush()
        hideEcho()
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR { continue }
            if count <= 0 || byte == UInt8(ascii: "\n") { break }
            bytes.append(byte)
        }
        showEcho()
        Output.note("")
        for (number, handler) in ignored { _ = signal(number, handler) }  // fails only for an unknown signal
        return bytes
    }

    private static func hideEcho() {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0, settings.c_lflag & tcflag_t(ECHO) != 0 else { return }
        settings.c_lflag &= ~tcflag_t(ECHO)
        echoIsOff.store(true, ordering: .sequentiallyConsistent)
        _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)  // fails only for a terminal that is gone
    }

    /// Turns the echo on again. A signal handler may call this (signal-safety(7)).
    private static func showEcho() {
        var settings = termios()
        guard echoIsOff.exchange(false, ordering: .sequentiallyConsistent), tcgetattr(STDIN_FILENO, &settings) == 0
        else { return }
        settings.c_lflag |= tcflag_t(ECHO)
        _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)  // fails only for a terminal that is gone
    }

    // MARK: - Signals

    private static let interrupted = Atomic(false)

    /// Whether Ctrl-C came after ``catchInterrupt()``.
    static var isInterrupted: Bool { interrupted.load(ordering: .sequentiallyConsistent) }

    /// Makes the next Ctrl-C set ``isInterrupted``, so that the command can end by itself. The one after it ends the
    /// program at once.
    static func catchInterrupt() {
        interrupted.store(false, ordering: .sequentiallyConsistent)
        // `signal` fails only for an unknown signal.
        _ = signal(SIGINT) { _ in
            if Terminal.interrupted.exchange(true, ordering: .sequentiallyConsistent) {
                Terminal.showCursor()
                _exit(128 + SIGINT)
            }
        }
    }

    /// Installs handlers that show the cursor and the echo again and exit with 128 plus the signal number: 130 for Ctrl-C, and what
    /// a shell reports for SIGTERM and SIGHUP. SIGPIPE is ignored; write(2) reports a closed pipe.
    static func handleInterrupts() {
        // Initialise the lazy static variable here, so that no signal handler is the first to access it.
        showCursor()
        showEcho()
        sendFarewell()
        _ = signal(SIGPIPE, SIG_IGN)  // fails only for an unknown signal
        for number in [SIGINT, SIGTERM, SIGHUP] {
            // `signal` fails only for an unknown signal.
            _ = signal(number) { number in
                Terminal.showCursor()
                Terminal.showEcho()
                Terminal.sendFarewell()
                _exit(128 + number)
            }
        }
    }
}
