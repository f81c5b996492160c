import CLinux

#if canImport(Glibc)
import Glibc
#endif

/// A thread of the system's own: for work that blocks, or that must stay on one thread.
package enum SystemThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a detached thread.
    ///
    /// - Parameter name: at most 15 bytes are shown by the system.
    /// - Returns: whether there was a thread to be had.
    @discardableResult
    package static func start(name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        let boxed = Unmanaged.passRetained(
            Body {
                _ = linux_set_thread_name(String(name.prefix(15)))
                body()
            })
        var thread = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        pthread_attr_setstacksize(&attributes, 512 * 1024)
        let code = pthread_create(
            &thread, &attributes,
            { context in
                if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, boxed.toOpaque())
        if code != 0 { boxed.release() }
        return code == 0
    }
}
