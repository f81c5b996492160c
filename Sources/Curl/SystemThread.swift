import CLinux

#if canImport(Glibc)
import Glibc
#endif

/// A thread of the system's own: for work that blocks, or that must stay on one thread.
package enum SystemThread {
    /// Bytes of stack for work of our own, which does not recurse.
    package static let smallStack = 512 * 1024
    /// Bytes of stack where others' code runs, or a decoder that goes down as deep as a server's text does: what a
    /// main thread has. Only what is used of it is memory.
    package static let largeStack = 8 << 20

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a detached thread.
    ///
    /// - Parameters:
    ///   - name: at most 15 bytes are shown by the system.
    ///   - stack: bytes.
    /// - Returns: whether there was a thread to be had.
    @discardableResult
    package static func start(
        name: String, stack: Int = smallStack, _ body: @escaping @Sendable () -> Void
    ) -> Bool {
        let boxed = Unmanaged.passRetained(
            Body {
                _ = linux_set_thread_name(String(name.prefix(15)))  // a name is for people to read
                body()
            })
        var thread = pthread_t()
        var attributes = pthread_attr_t()
        var code = pthread_attr_init(&attributes)
        guard code == 0 else {
            boxed.release()
            return false
        }
        defer { _ = pthread_attr_destroy(&attributes) }  // never fails in glibc
        code = pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        if code == 0 { code = pthread_attr_setstacksize(&attributes, stack) }
        guard code == 0 else {
            boxed.release()
            return false
        }
        code = pthread_create(
            &thread, &attributes,
            { context in
                if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, boxed.toOpaque())
        if code != 0 { boxed.release() }
        return code == 0
    }
}
