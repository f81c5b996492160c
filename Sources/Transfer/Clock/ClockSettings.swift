import CLinux
@preconcurrency import Dispatch
import Glibc

/// Hears from the kernel when someone sets the clock, and costs nothing until then (timerfd_create(2),
/// `TFD_TIMER_CANCEL_ON_SET`).
package enum ClockSettings {
    /// A stream that ends at once where the kernel cannot be asked.
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
                    // ECANCELED: it was set once more meanwhile.
                    guard errno == ECANCELED else { return continuation.finish() }
                }
            }
            source.setCancelHandler { _ = close(descriptor) }  // nothing was written to it
            continuation.onTermination = { _ in source.cancel() }
            source.activate()
        }
    }
}
