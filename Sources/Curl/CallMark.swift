import CLinux
import Glibc
import Synchronization

/// A mark of whether, and since when, a loop's thread is inside libcurl. The ``Watchman`` reads it and ends the
/// connection of a peer that keeps one call busy.
///
/// In some places libcurl 7.88 and libssh2 read on within a call for as long as bytes arrive: HTTP/2 frames without
/// content, the body of a proxy that refuses a tunnel, lines before an SSH server's identification. A peer that sends
/// them as fast as they are read occupies the loop's thread: no timer fires, no other transfer proceeds, and no
/// cancellation takes effect.
final class CallMark: Sendable {
    /// The number of entries and exits. It is odd inside libcurl, and even outside and within a callback. Written by
    /// the loop's thread only.
    private let step = Atomic<Int>(0)
    private let wasEnded = Atomic<Bool>(false)
    private let clock: clockid_t?
    /// libcurl's sockets, by file descriptor.
    private let sockets = Mutex<[Int32: Peer]>([:])
    private struct Peer {
        let identity: SocketIdentity
        var limit: ReceiptLimit?
    }

    /// Creates the mark, on the loop's thread.
    init() {
        var clock = clockid_t()
        self.clock = pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : nil
    }

    // MARK: On the loop's thread

    /// Marks `body` as a call into libcurl that may read from sockets.
    func inside<Value>(_ body: () -> Value) -> Value {
        let step = step.load(ordering: .relaxed)
        guard step & 1 == 0 else { return body() }
        // Sequential consistency prevents a lost wake-up: either the watchman sees the call before it sleeps, or this
        // thread sees that it sleeps.
        self.step.store(step &+ 1, ordering: .sequentiallyConsistent)
        Watchman.shared?.wake()
        defer { exit() }
        return body()
    }

    /// Marks the beginning of a callback, whose time does not count as libcurl's.
    ///
    /// - Returns: whether to call ``enter()`` at the end of the callback.
    @discardableResult
    func exit() -> Bool {
        let step = step.load(ordering: .relaxed)
        guard step & 1 == 1 else { return false }
        self.step.store(step &+ 1, ordering: .releasing)
        return true
    }

    func enter() { step.store(step.load(ordering: .relaxed) &+ 1, ordering: .releasing) }

    func add(_ socket: SocketIdentity) {
        sockets.withLock { sockets in
            // libcurl reports a socket again when it waits for another event, or when another transfer uses the
            // connection.
            guard sockets[socket.descriptor]?.identity != socket else { return }
            sockets[socket.descriptor] = Peer(identity: socket)
        }
    }

    /// Limits the bytes that the peer of a socket may send. The limit lasts as long as the connection.
    ///
    /// - Parameter known: the limit that the connection already has, if known.
    /// - Returns: `nil` if libcurl does not use the socket.
    func limitReceipts(of socket: Int32, by known: ReceiptLimit?) -> ReceiptLimit? {
        sockets.withLock { sockets in
            guard let peer = sockets[socket] else { return nil }
            if let limit = peer.limit { return limit }
            let limit = known ?? ReceiptLimit()
            sockets[socket]?.limit = limit
            Watchman.shared?.watchReceipts()
            return limit
        }
    }

    func remove(_ socket: Int32) { sockets.withLock { $0[socket] = nil } }

    /// Returns whether a connection was ended under libcurl since the last call.
    func drainEnd() -> Bool {
        wasEnded.load(ordering: .relaxed) && wasEnded.exchange(false, ordering: .acquiring)
    }

    // MARK: On the watchman's thread

    /// The number of the current call; `nil` outside libcurl.
    var call: Int? {
        let step = step.load(ordering: .sequentiallyConsistent)
        return step & 1 == 1 ? step : nil
    }

    /// The processor time used by the loop's thread, in nanoseconds.
    var processorTime: UInt64 {
        var time = timespec()
        guard let clock, clock_gettime(clock, &time) == 0 else { return 0 }
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// Returns the number of bytes that have been read from each socket.
    func drain() -> [Int32: UInt64] {
        sockets.withLock { $0.compactMapValues(\.identity.taken) }
    }

    /// Ends the connection from which the most bytes were read since `before`.
    func endBusiest(since before: [Int32: UInt64]) {
        sockets.withLock { sockets in
            let gains = sockets.compactMap { socket, peer -> (socket: Int32, gain: UInt64)? in
                // Bytes that lie unread in the kernel have not kept the loop busy.
                guard let count = peer.identity.taken else { return nil }
                return (socket, count &- (before[socket] ?? 0))
            }
            guard let busiest = gains.max(by: { $0.gain < $1.gain }) else { return }
            end(busiest.socket)
        }
    }

    /// Ends the connections whose peers have sent more than their limit.
    ///
    /// - Returns: the number of connections with a limit, and whether one was ended.
    func endExcessive() -> (limited: Int, hasEnded: Bool) {
        sockets.withLock { sockets in
            var limited = 0
            var hasEnded = false
            for (socket, peer) in sockets {
                guard let limit = peer.limit else { continue }
                limited += 1
                guard let count = peer.identity.received, count > limit.bytes else { continue }
                end(socket)
                hasEnded = true
            }
            return (limited, hasEnded)
        }
    }

    private func end(_ socket: Int32) {
        wasEnded.store(true, ordering: .releasing)
        _ = shutdown(socket, Int32(SHUT_RDWR))  // fails if the peer has closed it already
    }
}
