import Glibc

/// The full screen of a terminal, for one thread. The terminal is restored when the process ends, however it ends.
///
/// ```swift
/// let screen = try Screen(allowsColour: true)
/// screen.draw(Frame(lines: [StyledLine("hello")]))
/// let events = screen.wait(milliseconds: 1000)
/// screen.close()
/// ```
public final class Screen {
    public enum Event: Sendable, Equatable {
        case key(Key)
        case resized
        /// The picture must be drawn again, because the process was stopped.
        case continued
        /// The terminal is gone.
        case ended
    }

    /// The time in milliseconds after which a single ESC is the Escape key.
    private static let escapeDelay: Int32 = 50
    /// The time in milliseconds for which a picture may wait for a terminal that takes no bytes.
    private static let writeTimeout: Int32 = 2_000

    /// Wakes ``wait(milliseconds:)`` from another thread.
    public let wakeSignal: WakeSignal
    private let output: Int32
    private let ownsOutput: Bool
    private var decoder = KeyDecoder()
    private var diff: FrameDiff
    private var isEnded = false

    /// Turns standard input and standard output, which must be a terminal, into a full screen.
    public init(allowsColour: Bool) throws(ScreenError) {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { throw .noTerminal }
        wakeSignal = try WakeSignal()
        diff = FrameDiff(allowsColour: allowsColour)
        // An open file description of its own: O_NONBLOCK would otherwise apply to the shell's terminal too.
        let own = open("/proc/self/fd/1", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        ownsOutput = own >= 0
        output = own >= 0 ? own : STDOUT_FILENO
        ScreenSignals.install(waking: wakeSignal.writer)
        do throws(ScreenError) {
            try TerminalMode.enter(output)
        } catch {
            if ownsOutput { _ = Glibc.close(output) }  // nothing was written to it
            throw error
        }
    }

    /// Restores the terminal.
    public func close() { TerminalMode.leave() }

    deinit {
        TerminalMode.leave()
        if ownsOutput { _ = Glibc.close(output) }  // whatever the terminal did not take is lost
    }

    /// The terminal's size, or 80 by 24 if it does not report any.
    public var size: ScreenSize {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return ScreenSize(columns: 80, rows: 24)
        }
        return ScreenSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
    }

    /// Draws a picture: writes the lines that changed, at once.
    public func draw(_ frame: Frame) {
        let bytes = diff.update(to: frame, size: size)
        guard !bytes.isEmpty, !isEnded else { return }
        if !write(bytes) { diff.invalidate() }
    }

    /// Draws the next picture as a whole.
    public func invalidate() { diff.invalidate() }

    /// - Returns: whether all bytes were written.
    private func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(output, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                var entry = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
                guard poll(&entry, 1, Self.writeTimeout) > 0 else { return false }
            } else if errno != EINTR {
                isEnded = errno == EIO || errno == EBADF
                return false
            }
        }
        return true
    }

    /// Waits for input, a change of the size, or ``WakeSignal/send()``, for at most `milliseconds`.
    ///
    /// - Returns: the events in their order; none after the time or a wake-up.
    public func wait(milliseconds: Int32) -> [Event] {
        if isEnded { return [.ended] }
        var entries = [
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeSignal.reader, events: Int16(POLLIN), revents: 0),
        ]
        let limit = decoder.awaitsSequence ? Self.escapeDelay : max(0, milliseconds)
        let ready = poll(&entries, nfds_t(entries.count), limit)
        var events: [Event] = []
        if ready == 0 { events += decoder.endEscape().map { .key($0) } }
        wakeSignal.clear()
        if ScreenSignals.takeStopping() { suspend() }
        if ScreenSignals.takeContinued() { events.append(resume()) }
        if ScreenSignals.takeResized() { events.append(.resized) }
        if ready > 0, entries[0].revents != 0 { events += readKeys() }
        return events
    }

    private func readKeys() -> [Event] {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(STDIN_FILENO, &buffer, buffer.count)
        if count > 0 { return decoder.feed(buffer[..<count]).map { .key($0) } }
        if count < 0, errno == EINTR || errno == EAGAIN { return [] }
        isEnded = true
        return [.ended]
    }

    /// Restores the terminal and stops the process, as Ctrl-Z does elsewhere. Returns when it continues.
    public func suspend() {
        TerminalMode.leave()
        ScreenSignals.stop()
        _ = ScreenSignals.takeContinued()
        _ = resume()
    }

    private func resume() -> Event {
        TerminalMode.leave()
        do throws(ScreenError) {
            try TerminalMode.enter(output)
        } catch {
            isEnded = true
            return .ended
        }
        diff.invalidate()
        return .continued
    }
}
