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
    private let sockets = Mutex<[Int32: SocketIdentity]>([:])

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

    func add(_ socket: Int32) { sockets.withLock { $0[socket] = SocketIdentity(socket) } }

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

    /// Bytes that each socket has received.
    func received() -> [Int32: UInt64] {
        sockets.withLock { $0.compactMapValues(\.received) }
    }

    /// Ends the connection that received the most since `before`: the other sockets are not read meanwhile, so that
    /// little arrives there once they are full.
    func endBusiest(since before: [Int32: UInt64]) {
        sockets.withLock { sockets in
            let gains = sockets.compactMap { socket, identity -> (socket: Int32, gain: UInt64)? in
                guard let count = identity.received else { return nil }
                return (socket, count &- (before[socket] ?? 0))
            }
            guard let busiest = gains.max(by: { $0.gain < $1.gain }) else { return }
            wasEnded.store(true, ordering: .releasing)
            _ = shutdown(busiest.socket, Int32(SHUT_RDWR))  // fails where the peer has ended it already
        }
    }
}

/// Looks at the loops of the process while one of them works, and sleeps while none does.
final class Watchman: Sendable {
    /// `nil` where the system has no thread or descriptor to give: then nobody watches.
    static let shared = Watchman()

    /// Milliseconds between two looks.
    private static let interval: Int32 = 1_000
    /// Looks at which a call has to be the same one.
    private static let patience = 2
    /// Nanoseconds of processor time from one look to the next: a call that waits for the disk or a server uses less.
    private static let leastWork: UInt64 = 50_000_000

    private let isAsleep = Atomic<Bool>(false)
    private let wakeUp: WakeUp
    private struct Loop {
        weak var mark: CallMark?
        var call: Int?
        var looks = 0
        var processorTime: UInt64 = 0
        var received: [Int32: UInt64] = [:]
    }
    private let loops = Mutex<[Loop]>([])

    private init?() {
        guard let wakeUp = try? WakeUp(counting: false) else { return nil }
        self.wakeUp = wakeUp
        guard SystemThread.start(name: "dld-watchman", { [self] in run() }) else { return nil }
    }

    func watch(_ mark: CallMark) { loops.withLock { $0.append(Loop(mark: mark)) } }

    func wake() {
        guard isAsleep.load(ordering: .sequentiallyConsistent),
            isAsleep.exchange(false, ordering: .acquiringAndReleasing)
        else { return }
        wakeUp.signal()
    }

    private func run() {
        while true {
            isAsleep.store(true, ordering: .sequentiallyConsistent)
            if isAnyoneInside {
                isAsleep.store(false, ordering: .relaxed)
            } else {
                var entry = pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0)
                if poll(&entry, 1, -1) > 0 { wakeUp.wait() }
            }
            _ = poll(nil, 0, Self.interval)  // one that ends early is a look more
            look()
        }
    }

    private var isAnyoneInside: Bool { loops.withLock { $0.contains { $0.mark?.call != nil } } }

    private func look() {
        loops.withLock { loops in
            loops.removeAll { $0.mark == nil }
            for index in loops.indices {
                guard let mark = loops[index].mark, let call = mark.call else {
                    loops[index].call = nil
                    continue
                }
                let time = mark.processorTime
                let isSame = loops[index].call == call && time &- loops[index].processorTime >= Self.leastWork
                loops[index].looks = isSame ? loops[index].looks + 1 : 0
                if loops[index].looks >= Self.patience { mark.endBusiest(since: loops[index].received) }
                loops[index].call = call
                loops[index].processorTime = time
                loops[index].received = isSame ? mark.received() : [:]
            }
        }
    }
}
