import Glibc
import Synchronization

/// The mode of the terminal: raw input and the alternate screen. The mode from before is restored however the process
/// ends, except by SIGKILL.
enum TerminalMode {
    /// The descriptor that receives the sequences.
    private static let descriptor = Atomic<Int32>(-1)
    private static let isRaw = Atomic(false)
    private static let isPrepared = Atomic(false)
    /// The address of the terminal's settings from before. The memory is never freed: a signal handler may read it.
    private static let saved = Atomic<UInt>(0)

    /// The alternate screen (1049), no automatic wrap (7), bracketed paste (2004), keypad and cursor keys as usual.
    private static let entrance: StaticString = "\u{1B}[?1049h\u{1B}[?7l\u{1B}[?2004h\u{1B}[?1l\u{1B}>"
    /// CAN first: it ends a sequence that was cut off.
    private static let departure: StaticString =
        "\u{18}\u{1B}[0m\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[2J\u{1B}[H\u{1B}[?1049l"

    /// Turns on the raw mode and the alternate screen.
    static func enter(_ output: Int32) throws(ScreenError) {
        prepare()
        guard let settings = UnsafeMutablePointer<termios>(bitPattern: saved.load(ordering: .sequentiallyConsistent))
        else { throw .unusable(errno: ENOMEM) }
        // In the background the settings are those of another process, such as a shell that reads a line. This process
        // stops until it is in the foreground. A process group without a shell is not stopped, and gives up.
        var stops = 0
        while case let foreground = tcgetpgrp(STDIN_FILENO), foreground >= 0, foreground != getpgrp() {
            guard stops < 16, raise(SIGTTOU) == 0 else { throw .unusable(errno: EIO) }
            stops += 1
        }
        var before = termios()
        while tcgetattr(STDIN_FILENO, &before) != 0 {
            guard errno == EINTR else { throw .unusable(errno: errno) }
        }
        settings.pointee = before
        var raw = before
        cfmakeraw(&raw)
        descriptor.store(output, ordering: .sequentiallyConsistent)
        isRaw.store(true, ordering: .sequentiallyConsistent)
        while tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0 {
            guard errno == EINTR else {
                let code = errno
                isRaw.store(false, ordering: .sequentiallyConsistent)
                throw .unusable(errno: code)
            }
        }
        send(entrance)
    }

    /// Restores the mode from before. This may be called in a signal handler: it uses only calls that signal-safety(7)
    /// lists.
    static func leave() {
        // A signal may arrive in the middle: its handler then restores everything again, which does no harm.
        guard isRaw.load(ordering: .sequentiallyConsistent) else { return }
        // In the background the terminal belongs to another process, and a change of its settings would stop this one.
        let foreground = tcgetpgrp(STDIN_FILENO)
        guard foreground < 0 || foreground == getpgrp() else {
            isRaw.store(false, ordering: .sequentiallyConsistent)
            return
        }
        send(departure)
        if let settings = UnsafePointer<termios>(bitPattern: saved.load(ordering: .sequentiallyConsistent)) {
            // A terminal that is gone needs no settings.
            while tcsetattr(STDIN_FILENO, TCSANOW, settings) != 0, errno == EINTR {}
        }
        isRaw.store(false, ordering: .sequentiallyConsistent)
    }

    /// Writes static bytes. A terminal that takes nothing for 200 ms gets no more.
    private static func send(_ sequence: StaticString) {
        let output = descriptor.load(ordering: .sequentiallyConsistent)
        var start = sequence.utf8Start
        var left = sequence.utf8CodeUnitCount
        while left > 0 {
            var entry = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
            let ready = poll(&entry, 1, 200)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return }
            let count = write(output, start, left)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return }
            start += count
            left -= count
        }
    }

    /// Reserves the memory for the settings, and restores the mode when the process exits.
    private static func prepare() {
        guard !isPrepared.exchange(true, ordering: .sequentiallyConsistent) else { return }
        let settings = UnsafeMutablePointer<termios>.allocate(capacity: 1)
        settings.initialize(to: termios())
        saved.store(UInt(bitPattern: settings), ordering: .sequentiallyConsistent)
        _ = atexit { TerminalMode.leave() }  // without it, every regular way out still calls `leave`
    }
}
