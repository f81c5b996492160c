import Dispatch
import Synchronization
import SystemPackage

/// A thread with its libcurl multi handle. Only this thread uses the handle and the exchanges on it.
///
/// Work of other threads is posted to the loop. Once an idle loop has closed its connections, after a minute, it
/// sleeps in epoll without a deadline.
package final class TransferLoop: Sendable {
    /// A piece of work. A closure that is an array's element would be wrapped anew each time it is moved.
    struct Work: Sendable {
        let run: @Sendable (LoopCore) -> Void
    }

    private struct Inbox {
        var work: [Work] = []
        var stopped = false
    }

    private let inbox = Mutex(Inbox())
    private let wakeUp: WakeUp

    /// Starts the loop. Blocks until its thread is ready.
    ///
    /// - Parameters:
    ///   - faults: counts the faults that the watchdog finds.
    ///   - idleTimeout: the time without an exchange after which connections are closed, in milliseconds.
    /// - Throws: an error if the system has no thread or descriptor available, or libcurl cannot be initialised.
    package convenience init(
        name: String = "dld-loop", faults: LoopFaults = LoopFaults(), idleTimeout: Int64 = 60_000
    ) throws {
        try self.init(name: name) { loop, wakeUp in
            try LoopCore(loop, wakeUp: wakeUp, faults: faults, idleTimeout: idleTimeout)
        }
    }

    /// Starts the loop with the core that `makeCore` returns. It is called on the loop's thread, so that the core never
    /// belongs to another one.
    init(name: String, makeCore: @escaping @Sendable (TransferLoop, WakeUp) throws -> LoopCore) throws {
        try CurlLibrary.initialise()
        wakeUp = try WakeUp(counting: false)
        let start = Start()
        // Delegates, validators and handlers run on this thread too, so it has a large stack.
        let started = SystemThread.start(name: name, stack: SystemThread.largeStack) { [self] in
            let core: LoopCore
            do {
                core = try makeCore(self, wakeUp)
            } catch {
                return start.end(error)
            }
            start.end(nil)
            core.run { self.drainInbox(into: &$0) }
        }
        guard started else { throw Errno.resourceTemporarilyUnavailable }
        // Work that is posted to a loop without a core would never run.
        if let error = start.wait() { throw error }
    }

    /// The start of a loop's thread.
    private final class Start: Sendable {
        private let ended = DispatchSemaphore(value: 0)
        private let error = Mutex<(any Error)?>(nil)

        func end(_ error: (any Error)?) {
            self.error.withLock { $0 = error }
            ended.signal()
        }

        /// Blocks until the thread is ready.
        ///
        /// - Returns: the error if it cannot run.
        func wait() -> (any Error)? {
            ended.wait()
            return error.withLock { $0 }
        }
    }

    /// Runs `work` on the loop's thread soon, in the order of the posts.
    ///
    /// - Returns: `false` if the loop has been stopped and the work will not run.
    @discardableResult
    package func post(_ work: @escaping @Sendable (LoopCore) -> Void) -> Bool {
        let (isTaken, isFirst) = inbox.withLock { inbox -> (Bool, Bool) in
            guard !inbox.stopped else { return (false, false) }
            inbox.work.append(Work(run: work))
            return (true, inbox.work.count == 1)
        }
        if isFirst { wakeUp.signal() }
        return isTaken
    }

    /// Ends every exchange as cancelled, then the thread. Work posted earlier is done first.
    package func stop() {
        inbox.withLock { $0.stopped = true }
        wakeUp.signal()
    }

    /// Moves the posted work into an empty array, whose memory is used for the next posts.
    ///
    /// - Returns: whether the loop has been stopped.
    private func drainInbox(into work: inout [Work]) -> Bool {
        inbox.withLock { inbox in
            swap(&inbox.work, &work)
            return inbox.stopped
        }
    }
}
