import CLinux

#if canImport(Glibc)
import Glibc
#endif

/// A system thread, for work that blocks or that must stay on one thread.
package enum SystemThread {
    /// The stack size in bytes for this program's own code, which does not recurse.
    package static let smallStack = 512 * 1024
    /// The stack size in bytes for third-party code, or for a decoder whose recursion depth depends on a server's data.
    /// It is that of a main thread. Only the used part takes up memory.
    package static let largeStack = 8 << 20

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a detached thread.
    ///
    /// - Parameters:
    ///   - name: the thread's name; the system shows at most 15 bytes.
    ///   - stack: the stack size in bytes.
    /// - Returns: whether a thread could be created.
    @discardableResult
    package static func start(
        name: String, stack: Int = smallStack, _ body: @escaping @Sendable () -> Void
    ) -> Bool {
        let boxed = Unmanaged.passRetained(
            Body {
                _ = linux_set_thread_name(String(name.prefix(15)))  // the name is only for display
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
