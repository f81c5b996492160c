package import Logging
import Synchronization
package import TaskFiles
import TaskModel

/// A watcher of directories. It queues the files that users drop there, on behalf of each file's owner.
///
/// With kernel notifications it wakes up only after an event. Elsewhere it scans the directory every ten seconds.
package final class DirectoryWatcher: Sendable {
    private let watches: [DirectoryWatch]
    private let clock: QueueClock
    private let dropProblems = DropProblems()
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// The maximum time, in milliseconds, that ``stop()`` waits for an unresponsive file system.
    private static let stopTimeout: Milliseconds = 5_000

    package init(
        _ watches: [Watch], queue: TaskQueue, rules: DropRules, clock: QueueClock = .system, logger: Logger
    ) {
        self.clock = clock
        self.watches = watches.map { [dropProblems] watch in
            DirectoryWatch(
                intake: DropIntake(
                    watch: watch, queue: queue, rules: rules, clock: clock, logger: logger,
                    work: BlockingWork(name: "watch"), problems: dropProblems))
        }
    }

    /// The current problems with dropped files, a line for each.
    package var problems: [String] { dropProblems.lines }

    /// Returns warnings about configured directories that are not watched.
    package static func warnings(about watches: [Watch], _ settings: QueueSettings) -> [String] {
        watches.map(\.directory).filter { DirectoryWatch.isWhereDownloadsGo($0, settings) }.map {
            "\($0) is not watched: \(DirectoryWatch.whyNot)"
        }
    }

    package func start() {
        let started = watches.map { watch in Task { await watch.run() } }
        tasks.withLock { $0 += started }
    }

    /// Stops watching and returns when no file is being queued any more. Files that were dropped but not taken are
    /// found at the next start.
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
            await clock.sleep(Self.stopTimeout)
            end.finish()
        }
        for await _ in ends {}
        waiting.cancel()
        alarm.cancel()
    }
}
