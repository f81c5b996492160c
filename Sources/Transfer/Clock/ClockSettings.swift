import CLinux
@preconcurrency import Dispatch
import Glibc

/// Notifications by the kernel that the wall clock was set (timerfd_create(2), `TFD_TIMER_CANCEL_ON_SET`). They use no
/// CPU time until then.
package enum ClockSettings {
    /// Returns a stream with one element for each change of the clock. It ends at once if the kernel offers no such
    /// notification.
    package static func stream() -> AsyncStream<Void> {
        AsyncStream { continuation in
            let descriptor = linux_clock_watch()
            guard descriptor >= 0 else { return continuation.finish() }
            let source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
            source.setEventHandler {
                var expirations: UInt64 = 0
                let count = read(descriptor, &expirations, MemoryLayout.size(ofValue: expirations))
                guard count < 0, errno == ECANCELED else { return }
                continuation.yield()
                while linux_clock_watch_arm(descriptor) != 0 {
                    // ECANCELED: the clock was set again in the meantime.
                    guard errno == ECANCELED else { return continuation.finish() }
                }
            }
            source.setCancelHandler { _ = close(descriptor) }  // nothing was written to the descriptor
            continuation.onTermination = { _ in source.cancel() }
            source.activate()
        }
    }
}
