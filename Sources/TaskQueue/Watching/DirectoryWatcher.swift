import Logging
import Synchronization
import TaskFiles
import TaskModel

/// Watches directories, and queues the files that are dropped there in the name of their owners.
///
/// Where the kernel tells what happens in a directory, nothing wakes up until something does; elsewhere it is looked at
/// every ten seconds.
package final class DirectoryWatcher: Sendable {
    private let watches: [DirectoryWatch]
    private let clock: QueueClock
    private let complaints = Complaints()
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// Milliseconds that ``stop()`` waits for a file system that does not answer.
    private static let patience: Milliseconds = 5_000

    package init(
        _ watches: [Watch], queue: TaskQueue, rules: DropRules, clock: QueueClock = .system, logger: Logger
    ) {
        self.clock = clock
        self.watches = watches.map { [complaints] watch in
            DirectoryWatch(
                intake: DropIntake(
                    watch: watch, queue: queue, rules: rules, clock: clock, logger: logger,
                    work: BlockingWork(name: "watch"), complaints: complaints))
        }
    }

    /// What is wrong with dropped files at this moment, a line for each.
    package var problems: [String] { complaints.lines }

    /// What is asked for and not done.
    package static func warnings(about watches: [Watch], _ settings: QueueSettings) -> [String] {
        watches.map(\.directory).filter { DirectoryWatch.isWhereDownloadsGo($0, settings) }.map {
            "\($0) is not watched: \(DirectoryWatch.whyNot)"
        }
    }

    package func start() {
        let started = watches.map { watch in Task { await watch.run() } }
        tasks.withLock { $0 += started }
    }

    /// Returns when no file is being queued any more. What was dropped and not taken is found at the next start.
    package func stop() async {
        let started = tasks.withLock { tasks in
            defer { tasks = [] }
            return tasks
        }
        for task in started { task.cancel() }
        let (ends, end) = AsyncStream<Void>.makeStream()
        let waiting = Task {
            for task in started { await task.value }
            end.finish()
        }
        let alarm = Task { [clock] in
            await clock.sleep(Self.patience)
            end.finish()
        }
        for await _ in ends {}
        waiting.cancel()
        alarm.cancel()
    }
}
