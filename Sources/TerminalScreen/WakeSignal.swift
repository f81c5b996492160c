import Glibc

/// A pipe that wakes a thread in poll(2). ``send()`` may be called by any thread and in a signal handler.
public final class WakeSignal: Sendable {
    let reader: Int32
    let writer: Int32

    /// - Throws: ``ScreenError`` if the process has too many open files.
    public init() throws(ScreenError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .unusable(errno: errno) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)  // fails only for a closed descriptor
            _ = fcntl(end, F_SETFL, O_NONBLOCK)  // fails only for a closed descriptor
        }
        reader = ends[0]
        writer = ends[1]
    }

    deinit {
        _ = close(reader)  // nothing is lost with it
        _ = close(writer)  // nothing is lost with it
    }

    public func send() {
        var byte: UInt8 = 0
        _ = write(writer, &byte, 1)  // a full pipe wakes the thread too
    }

    /// Waits for ``send()``, for at most `milliseconds`.
    public func wait(milliseconds: Int32) {
        var entry = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, max(0, milliseconds))  // the caller looks at its own state, whatever ended the wait
        clear()
    }

    /// Reads the pipe until it is empty.
    func clear() {
        var buffer = [UInt8](repeating: 0, count: 256)
        while read(reader, &buffer, buffer.count) > 0 {}
    }
}
