import Synchronization

/// A pool of threads for blocking calls: `getaddrinfo`, `fdatasync`.
///
/// A thread is created when work arrives and none is free, up to a limit. A thread without work sleeps in the kernel,
/// and ends after a minute by default.
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
    /// The time for which a thread waits for work, in milliseconds.
    private let idleTimeout: Int32
    private let wakeUp: WakeUp?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - stack: the stack size of each thread in bytes.
    ///   - idleTimeout: the time for which a thread waits for work before it ends, in milliseconds.
    package init(
        name: String, limit: Int, stack: Int = SystemThread.smallStack, idleTimeout: Int32 = 60_000
    ) {
        self.idleTimeout = idleTimeout
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
            // No thread could be created. If others exist, they will do the work; otherwise it is done here.
            let alone = state.withLock { state in
                state.threads -= 1
                return state.threads == 0
            }
            if alone, let own = nextWork() { return own() }
        }
        wakeUp.signal()
    }

    /// Lets the threads end once the waiting work has been done.
    package func stop() {
        let count = state.withLock { state in
            state.stopped = true
            return state.threads
        }
        for _ in 0..<count { wakeUp?.signal() }
    }

    private func nextWork() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.next < state.work.count else { return nil }
            let work = state.work[state.next]
            // Objects that the closure captures must not live on until the queue is empty, and its slot is freed as
            // well.
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
            let isSignalled = wakeUp.wait(atMost: idleTimeout)
            let ends = state.withLock { state in
                state.idle -= 1
                // Work posted in the meantime relies on this thread.
                guard !isSignalled, state.next == state.work.count else { return false }
                state.threads -= 1
                return true
            }
            if ends { return }
            if let work = nextWork() {
                work()
            } else if state.withLock({ $0.stopped }) {
                return
            }
        }
    }
}
