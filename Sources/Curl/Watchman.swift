import CLinux
import Glibc
import Synchronization

/// Looks at the loops of the process while one of them works, and sleeps while none does.
final class Watchman: Sendable {
    /// `nil` where the system has no thread or descriptor to give: then nobody watches.
    static let shared = Watchman()

    /// Milliseconds between two looks at the calls.
    private static let interval: Int64 = 1_000
    /// Milliseconds between two looks at what peers with a ``ReceiptLimit`` have sent.
    private static let receiptInterval: Int64 = 20
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

    /// Has him look at what peers have sent, soon and again and again: one of them has a limit now.
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
            // The loop has freed by now what libssh2 kept.
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
                if loops[index].looks >= Self.patience { mark.endBusiest(since: loops[index].taken) }
                loops[index].call = call
                loops[index].processorTime = time
                loops[index].taken = isSame ? mark.taken() : [:]
            }
        }
    }
}
