import CLinux
import SystemPackage

#if canImport(Glibc)
import Glibc
#endif

/// An eventfd that wakes a thread out of epoll or out of ``wait()``.
package final class WakeUp: Sendable {
    package let descriptor: Int32
    private let isCounting: Bool

    /// - Parameter counting: each signal ends one ``wait()``; otherwise, for epoll, one `wait` takes all signals.
    package init(counting: Bool) throws(Errno) {
        isCounting = counting
        descriptor = linux_eventfd(counting ? 1 : 0)
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    }

    deinit {
        // Nothing can be lost: no bytes are written behind such a descriptor.
        _ = close(descriptor)
    }

    package func signal() {
        var one: UInt64 = 1
        while write(descriptor, &one, 8) < 0, errno == EINTR {}
    }

    /// Blocks until a signal comes where `counting`, otherwise takes the signals that are there.
    package func wait() {
        while !take(), isCounting { _ = isReadable(within: -1) }
    }

    /// Waits for a signal for at most so many milliseconds.
    ///
    /// - Returns: whether a signal came.
    @discardableResult package func wait(atMost milliseconds: Int32) -> Bool {
        let deadline = MonotonicTime.now().advanced(milliseconds: Int64(milliseconds))
        var left = milliseconds
        while isReadable(within: left) {
            if take() { return true }
            // Another thread took the signal between the two calls.
            left = Int32(clamping: MonotonicTime.now().milliseconds(until: deadline))
        }
        return false
    }

    /// Takes a signal, without waiting for one.
    private func take() -> Bool {
        var count: UInt64 = 0
        while true {
            if read(descriptor, &count, 8) == 8 { return true }
            guard errno == EINTR else { return false }
        }
    }

    private func isReadable(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }
}
