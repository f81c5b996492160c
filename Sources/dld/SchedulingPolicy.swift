import FoundationEssentials
import Glibc

/// How the kernel shares the processor out to the daemon.
enum SchedulingPolicy {
    private static let batch: Int32 = 3  // SCHED_BATCH, a macro that Swift does not see

    /// Takes its turn as batch work does (sched(7), `SCHED_BATCH`): what the daemon wakes up for does not push aside
    /// what runs at that moment, be it a person's program, the server at the other end or another of its own threads.
    /// With many small files that spares half of the changes of context.
    ///
    /// For the threads there are; later ones have it from those that start them. Where it is not allowed, all stays
    /// as it was.
    static func becomeBatch() {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        // A person or a unit that chose another policy knows better.
        for thread in threads.compactMap({ pid_t($0) }) where sched_getscheduler(thread) == SCHED_OTHER {
            var parameters = sched_param()
            _ = sched_setscheduler(thread, batch, &parameters)  // a thread may have ended, or keeps its policy
        }
    }
}
