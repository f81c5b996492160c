import Logging
import TaskQueue

/// The reports of the running daemon to the service manager: its status text, and the signs of life for the watchdog.
///
/// While tasks run, both are due from time to time. While none runs, the reporter sleeps until the queue changes, and
/// only wakes up for the idle watchdog.
struct ServiceReporter: Sendable {
    let queue: TaskQueue
    let status: ServiceStatus
    let watchdog: Watchdog?
    let logger: Logger
    /// Returns what an administrator has to correct at present, a line for each problem.
    let problems: @Sendable () async -> [String]

    /// The time between two status texts while tasks run.
    private static let interval: Duration = .seconds(5)
    /// The time after a change of an idle queue in which more changes are expected.
    private static let pause: Duration = .milliseconds(500)
    /// The time after which an idle daemon looks whether a problem is solved.
    private static let problemCheck: Duration = .seconds(30)

    /// Runs until the task is cancelled.
    func run() async {
        var isIdle: Bool?
        var nextCheck = ContinuousClock.now
        while !Task.isCancelled {
            let seen = queue.changes.value
            let idle = await queue.runningCount() == 0
            let hasProblems = await report()
            if let watchdog, idle != isIdle || ContinuousClock.now >= nextCheck {
                guard await check(watchdog, isIdle: idle) else { return }
                nextCheck = .now + watchdog.interval(isIdle: idle)
            }
            isIdle = idle
            var rest = watchdog.map { _ in max(.zero, nextCheck - .now) }
            if hasProblems { rest = min(rest ?? Self.problemCheck, Self.problemCheck) }
            if idle {
                await sleepIdle(since: seen, atMost: rest)
            } else {
                try? await Task.sleep(for: min(rest ?? Self.interval, Self.interval))
            }
        }
    }

    /// Sleeps until the queue has changed since `seen`.
    private func sleepIdle(since seen: UInt64, atMost time: Duration?) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await queue.changes.change(since: seen) }
            if let time { group.addTask { try? await Task.sleep(for: time) } }
            await group.next()
            group.cancelAll()
        }
        try? await Task.sleep(for: Self.pause)
    }

    /// - Returns: whether there are problems.
    private func report() async -> Bool {
        let (rates, problems) = (await queue.rates(), await problems())
        // A count that cannot be read is reported next time.
        guard let tasks = try? await queue.totalCounts() else { return !problems.isEmpty }
        status.update(
            .init(tasks: tasks, downloadRate: rates.download, uploadRate: rates.upload), problems: problems)
        return !problems.isEmpty
    }

    /// Checks the daemon's parts and tells the service manager.
    ///
    /// - Returns: whether all parts work.
    private func check(_ watchdog: Watchdog, isIdle: Bool) async -> Bool {
        let hanging = await watchdog.hangingParts()
        guard hanging.isEmpty else {
            if Task.isCancelled { return false }
            logger.critical(
                "a part of the daemon hangs; systemd restarts the daemon",
                metadata: [
                    "part": "\(hanging.joined(separator: ", "))", "seconds": "\(watchdog.timeout.components.seconds)",
                ])
            ServiceManager.notify("WATCHDOG=trigger")
            return false
        }
        let (seconds, attoseconds) = watchdog.timeout(isIdle: isIdle).components
        ServiceManager.notify("WATCHDOG=1")
        ServiceManager.notify("WATCHDOG_USEC=\(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)")
        return true
    }

    /// Asks the service manager for more time to stop, until the task is cancelled or ``mostExtensions`` are used up
    /// (sd_notify(3), `EXTEND_TIMEOUT_USEC=`).
    static func extendStopTimeout() async {
        for _ in 0..<mostExtensions {
            ServiceManager.notify("EXTEND_TIMEOUT_USEC=\(extensionSeconds * 1_000_000)")
            do { try await Task.sleep(for: .seconds(extensionSeconds / 2)) } catch { return }
        }
    }

    /// The extension in seconds.
    private static let extensionSeconds = 30
    /// The most extensions. After ten minutes in all, systemd ends the daemon.
    private static let mostExtensions = 40
}
