import CLinux
import Glibc
import Synchronization

/// Whether a loop's thread is inside libcurl, and since when: for the ``Watchman``, who ends the connection of a peer
/// that keeps one call busy.
///
/// In some places libcurl 7.88 and libssh2 read on within a call for as long as bytes come: frames of HTTP/2 that bring
/// nothing, the body of a proxy that refuses a tunnel, lines before an SSH server's name. A peer that sends them as fast
/// as they are read has the loop's thread to itself: no timer fires, no other transfer goes on, nothing is cancelled.
final class CallMark: Sendable {
    /// Odd inside libcurl, even outside, also within a callback of ours. Written by the loop's thread alone.
    private let step = Atomic<Int>(0)
    private let wasEnded = Atomic<Bool>(false)
    private let clock: clockid_t?
    /// libcurl's sockets, by descriptor.
    private let sockets = Mutex<[Int32: Peer]>([:])
    private struct Peer {
        let identity: SocketIdentity
        var limit: ReceiptLimit?
    }

    /// To be made on the loop's thread.
    init() {
        var clock = clockid_t()
        self.clock = pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : nil
    }

    // MARK: On the loop's thread

    /// Marks `body` as a call of libcurl's that may read from sockets.
    func inside<Value>(_ body: () -> Value) -> Value {
        let step = step.load(ordering: .relaxed)
        guard step & 1 == 0 else { return body() }
        // Either the watchman sees the call before he sleeps, or he is seen asleep here.
        self.step.store(step &+ 1, ordering: .sequentiallyConsistent)
        Watchman.shared?.wake()
        defer { leave() }
        return body()
    }

    /// At the beginning of a callback: the time that it takes is ours.
    ///
    /// - Returns: whether to ``enter()`` at its end.
    @discardableResult
    func leave() -> Bool {
        let step = step.load(ordering: .relaxed)
        guard step & 1 == 1 else { return false }
        self.step.store(step &+ 1, ordering: .releasing)
        return true
    }

    func enter() { step.store(step.load(ordering: .relaxed) &+ 1, ordering: .releasing) }

    func add(_ socket: Int32) {
        let identity = SocketIdentity(socket)
        sockets.withLock { sockets in
            // libcurl says so again where it waits for something else, or has another transfer use the connection.
            guard sockets[socket]?.identity != identity else { return }
            sockets[socket] = Peer(identity: identity)
        }
    }

    /// Limits what the peer of a socket may send; the limit stays for as long as the connection does.
    ///
    /// - Parameter known: the one that it has had, where it is known.
    /// - Returns: `nil` where libcurl does not use the socket.
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

    /// Whether a connection was ended under libcurl since this was last asked.
    func takeEnd() -> Bool {
        wasEnded.load(ordering: .relaxed) && wasEnded.exchange(false, ordering: .acquiring)
    }

    // MARK: On the watchman's

    /// The call that is under way.
    var call: Int? {
        let step = step.load(ordering: .sequentiallyConsistent)
        return step & 1 == 1 ? step : nil
    }

    /// Nanoseconds of processor time that the loop's thread has used.
    var processorTime: UInt64 {
        var time = timespec()
        guard let clock, clock_gettime(clock, &time) == 0 else { return 0 }
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// Bytes that have been taken from each socket.
    func taken() -> [Int32: UInt64] {
        sockets.withLock { $0.compactMapValues(\.identity.taken) }
    }

    /// Ends the connection from which the most was taken since `before`.
    func endBusiest(since before: [Int32: UInt64]) {
        sockets.withLock { sockets in
            let gains = sockets.compactMap { socket, peer -> (socket: Int32, gain: UInt64)? in
                // What lies unread in the kernel has not kept the loop busy.
                guard let count = peer.identity.taken else { return nil }
                return (socket, count &- (before[socket] ?? 0))
            }
            guard let busiest = gains.max(by: { $0.gain < $1.gain }) else { return }
            end(busiest.socket)
        }
    }

    /// Ends the connections whose peers have sent more than they may.
    ///
    /// - Returns: how many have a limit, and whether one was ended.
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
        _ = shutdown(socket, Int32(SHUT_RDWR))  // fails where the peer has ended it already
    }
}
