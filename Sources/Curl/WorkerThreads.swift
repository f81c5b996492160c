import Synchronization

/// Threads for calls that block: `getaddrinfo`, `fdatasync`.
///
/// A thread is made when work arrives and none is free, up to a limit. One that has no work sleeps in the kernel, and
/// ends after a minute of that.
package final class WorkerThreads: Sendable {
    private struct State {
        var work: [@Sendable () -> Void] = []
        var next = 0
        var threads = 0
        var idle = 0
        var stopped = false
    }

    private let name: String
    private let limit: Int
    private let stack: Int
    /// Milliseconds for which a thread waits for work.
    private let patience: Int32
    private let wakeUp: WakeUp?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - stack: bytes for each.
    ///   - patience: milliseconds for which a thread waits for work before it ends.
    package init(
        name: String, limit: Int, stack: Int = SystemThread.smallStack, patience: Int32 = 60_000
    ) {
        self.patience = patience
        self.name = name
        self.limit = limit
        self.stack = stack
        wakeUp = try? WakeUp(counting: true)
    }

    package func perform(_ work: @escaping @Sendable () -> Void) {
        guard let wakeUp else { return work() }
        let wantsThread = state.withLock { state in
            state.work.append(work)
            guard state.idle < state.work.count - state.next, state.threads < limit else { return false }
            state.threads += 1
            return true
        }
        if wantsThread, !SystemThread.start(name: name, stack: stack, { [self] in run(wakeUp) }) {
            // No thread to be had: where others exist they will come to it, otherwise it is done here.
            let alone = state.withLock { state in
                state.threads -= 1
                return state.threads == 0
            }
            if alone, let own = take() { return own() }
        }
        wakeUp.signal()
    }

    /// Lets the threads end once the work that is waiting has been done.
    package func stop() {
        let count = state.withLock { state in
            state.stopped = true
            return state.threads
        }
        for _ in 0..<count { wakeUp?.signal() }
    }

    private func take() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.next < state.work.count else { return nil }
            let work = state.work[state.next]
            // What it holds must not live on until the queue runs empty, and neither may its place.
            state.work[state.next] = {}
            state.next += 1
            if state.next == state.work.count {
                state.work.removeAll(keepingCapacity: true)
                state.next = 0
            } else if state.next >= 1024, state.next * 2 >= state.work.count {
                state.work.removeFirst(state.next)
                state.next = 0
            }
            return work
        }
    }

    private func run(_ wakeUp: WakeUp) {
        while true {
            state.withLock { $0.idle += 1 }
            let isSignalled = wakeUp.wait(atMost: patience)
            let ends = state.withLock { state in
                state.idle -= 1
                // What was posted meanwhile counts on this thread.
                guard !isSignalled, state.next == state.work.count else { return false }
                state.threads -= 1
                return true
            }
            if ends { return }
            if let work = take() {
                work()
            } else if state.withLock({ $0.stopped }) {
                return
            }
        }
    }
}
