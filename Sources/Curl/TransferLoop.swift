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

    /// - Parameters:
    ///   - faults: counts the faults that the watchdog finds.
    ///   - idleTimeout: the time without an exchange after which connections are closed, in milliseconds.
    /// - Throws: an error if the system has no thread or descriptor available, or libcurl cannot be initialised.
    package init(name: String = "dld-loop", faults: LoopFaults = LoopFaults(), idleTimeout: Int64 = 60_000) throws {
        try CurlLibrary.initialise()
        wakeUp = try WakeUp(counting: false)
        // Delegates, validators and handlers run on this thread too, so it has a large stack.
        let started = SystemThread.start(name: name, stack: SystemThread.largeStack) { [self] in
            // The core is created on its own thread, so that it never belongs to another one.
            guard let core = try? LoopCore(self, wakeUp: wakeUp, faults: faults, idleTimeout: idleTimeout) else {
                return fail()
            }
            core.run { self.drainInbox(into: &$0) }
        }
        guard started else { throw Errno.resourceTemporarilyUnavailable }
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

    private func fail() {
        inbox.withLock { $0.stopped = true }
    }
}
