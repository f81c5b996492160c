package import CLinux
package import SystemPackage

#if canImport(Glibc)
import Glibc
#endif

/// An owner of an epoll descriptor.
package struct EventPoll: ~Copyable {
    private let descriptor: Int32

    package init() throws(Errno) {
        descriptor = linux_epoll_create()
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    }

    deinit {
        // No data can be lost, since an epoll descriptor buffers no writes.
        _ = close(descriptor)
    }

    /// - Parameter tag: a value returned with each event of this registration.
    package borrowing func add(_ fd: Int32, mask: UInt32, tag: UInt64) -> Bool {
        linux_epoll_add(descriptor, fd, mask, tag) == 0
    }

    package borrowing func change(_ fd: Int32, mask: UInt32, tag: UInt64) -> Bool {
        linux_epoll_change(descriptor, fd, mask, tag) == 0
    }

    package borrowing func remove(_ fd: Int32) {
        _ = linux_epoll_remove(descriptor, fd)  // fails if the descriptor was closed, which removed it
    }

    /// - Parameter timeout: in milliseconds, −1 to wait without limit.
    /// - Returns: the number of events at the front of `events`.
    package borrowing func wait(into events: UnsafeMutableBufferPointer<linux_event>, timeout: Int32) -> Int {
        let count = linux_epoll_wait(descriptor, events.baseAddress, Int32(events.count), timeout)
        return max(0, Int(count))
    }
}
