import CLinux
import Glibc
import Synchronization

/// A thread that checks the process's loops while one of them is inside libcurl, and sleeps while none is.
final class Watchman: Sendable {
    /// The only instance; `nil` if the system has no thread or descriptor available, so that nothing is watched.
    static let shared = Watchman()

    /// The interval between two checks of the calls, in milliseconds.
    private static let interval: Int64 = 1_000
    /// The interval between two checks of the bytes received from peers with a ``ReceiptLimit``, in milliseconds.
    private static let receiptInterval: Int64 = 20
    /// The number of checks in a row at which the same busy call must be found again.
    private static let tolerance = 2
    /// The least processor time used between two checks, in nanoseconds. A call that waits for the disk or a server
    /// uses less.
    private static let leastWork: UInt64 = 50_000_000

    private let isAsleep = Atomic<Bool>(false)
    private let wakeUp: WakeUp
    private struct Loop {
        weak var mark: CallMark?
        var call: Int?
        var looks = 0
        var processorTime: UInt64 = 0
        var taken: [Int32: UInt64] = [:]
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

    /// Starts the frequent checks of received bytes, because a connection has got a limit.
    func watchReceipts() { wakeUp.signal() }

    private func run() {
        while true {
            isAsleep.store(true, ordering: .sequentiallyConsistent)
            if isAnyoneInside {
                isAsleep.store(false, ordering: .relaxed)
            } else {
                wakeUp.wait(atMost: -1)
            }
            var hasEnded = false
            let next = MonotonicTime.now().advanced(milliseconds: Self.interval)
            while true {
                let looks = loops.withLock { $0.compactMap(\.mark) }.map { $0.endExcessive() }
                hasEnded = hasEnded || looks.contains(where: \.hasEnded)
                let rest = MonotonicTime.now().milliseconds(until: next)
                guard rest > 0 else { break }
                let areLimited = looks.contains { $0.limited > 0 }
                wakeUp.wait(atMost: Int32(clamping: areLimited ? min(Self.receiptInterval, rest) : rest))
            }
            look()
            // The loop has freed the memory that libssh2 kept by now.
            if hasEnded { linux_give_memory_back() }
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
                if loops[index].looks >= Self.tolerance { mark.endBusiest(since: loops[index].taken) }
                loops[index].call = call
                loops[index].processorTime = time
                loops[index].taken = isSame ? mark.drain() : [:]
            }
        }
    }
}
