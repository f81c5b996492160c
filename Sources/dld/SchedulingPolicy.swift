import FoundationEssentials
import Glibc

/// The kernel's scheduling policy for the daemon.
enum SchedulingPolicy {
    private static let batch: Int32 = 3  // SCHED_BATCH, a macro that Swift cannot import

    /// Sets the batch scheduling policy (sched(7), `SCHED_BATCH`). A thread of the daemon that wakes up then does not
    /// preempt the running thread, be it a user's program, the server at the other end or another thread of the daemon.
    /// With many small files this halves the number of context switches.
    ///
    /// The policy applies to the existing threads; later threads inherit it from those that create them. Where it is
    /// not permitted, nothing changes.
    static func becomeBatch() {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        // A policy that was chosen by a user or a unit is kept.
        for thread in threads.compactMap({ pid_t($0) }) where sched_getscheduler(thread) == SCHED_OTHER {
            var parameters = sched_param()
            _ = sched_setscheduler(thread, batch, &parameters)  // a thread may have ended, or keeps its policy
        }
    }
}
