import CCurl
import Glibc

/// Easy handles of a loop that have done their work, kept for later exchanges of the loop.
///
/// Creating and freeing a handle costs more than resetting one. A handle that used TLS must not be kept: its next
/// connection would resume a TLS session, in which a server sends no certificates to evaluate.
final class EasyHandlePool {
    /// The maximum number of handles kept. A handle takes about 6 KiB.
    private static let capacity = 32
    private var idle: [UnsafeMutableRawPointer] = []
    /// The thread of the loop.
    private var thread: pthread_t?

    deinit {
        for handle in idle { curl_easy_cleanup(handle) }
    }

    /// Removes and returns a handle in its initial state; `nil` if there is none. Call it on the loop's thread.
    func take() -> UnsafeMutableRawPointer? {
        if thread == nil { thread = pthread_self() }
        return idle.popLast()
    }

    /// Takes over a handle that belongs to no multi handle, or frees it.
    func keep(_ handle: UnsafeMutableRawPointer) {
        guard let thread, pthread_equal(thread, pthread_self()) != 0, idle.count < Self.capacity else {
            return curl_easy_cleanup(handle)
        }
        curl_easy_reset(handle)
        idle.append(handle)
    }
}
