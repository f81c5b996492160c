import CLinux
package import SystemPackage

#if canImport(Glibc)
import Glibc
#endif

/// An eventfd that wakes a thread from epoll or from ``wait()``.
package final class WakeUp: Sendable {
    package let descriptor: Int32
    private let isCounting: Bool

    /// - Parameter counting: whether each signal ends one ``wait()``. Otherwise, for use with epoll, one `wait`
    ///   consumes all signals.
    package init(counting: Bool) throws(Errno) {
        isCounting = counting
        descriptor = linux_eventfd(counting ? 1 : 0)
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    }

    deinit {
        // No data can be lost, since no writes are pending on an eventfd.
        _ = close(descriptor)
    }

    package func signal() {
        var one: UInt64 = 1
        while write(descriptor, &one, 8) < 0, errno == EINTR {}
    }

    /// Consumes signals. With `counting`, blocks until one is available and consumes it; otherwise consumes the
    /// available ones without blocking.
    package func wait() {
        while !consume(), isCounting { _ = isReadable(within: -1) }
    }

    /// Waits for a signal for at most the given number of milliseconds.
    ///
    /// - Returns: whether a signal was consumed.
    @discardableResult package func wait(atMost milliseconds: Int32) -> Bool {
        let deadline = MonotonicTime.now().advanced(milliseconds: Int64(milliseconds))
        var left = milliseconds
        while isReadable(within: left) {
            if consume() { return true }
            // Another thread consumed the signal between the two calls.
            left = Int32(clamping: MonotonicTime.now().milliseconds(until: deadline))
        }
        return false
    }

    /// Consumes a signal, without waiting for one.
    private func consume() -> Bool {
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
