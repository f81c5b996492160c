import Logging
import TaskModel
import TaskStore

/// The log entries about runs.
extension Scheduler {
    private func log(of task: RunningTask) -> RunLog {
        RunLog(record: task.record, host: task.work.host, now: clock.now(), utcOffset: clock.utcOffset)
    }

    /// Logs starts.
    ///
    /// - Parameter brief: the tasks whose runs have ended already.
    func logStarts(_ starts: [TaskChange], brief: Set<TaskID> = []) {
        for case .started(let id, _) in starts {
            let isBrief = brief.contains(id)
            guard logger.logLevel <= RunLog.levelOfStart(isBrief: isBrief), let task = running[id] else { continue }
            logger.log(log(of: task).started(isBrief: isBrief))
        }
    }

    /// Returns the entry about the end of a run; `nil` where it is not logged. It is logged once the end is recorded.
    func logEntry(
        for task: RunningTask, _ outcome: TaskConclusion, _ report: RunOutcomePolicy.Report, _ ending: RunEnding
    ) -> TaskLogEntry? {
        let isNews = notices.isNews(outcome, of: task.record)
        guard let level = RunLog.level(of: outcome, isNews: isNews, warning: ending.warning), logger.logLevel <= level
        else { return nil }
        let end = RunLog.End(
            bytesDone: report.bytesDone, transferred: report.transferred,
            duration: QueueClock.system.monotonic() - task.began, path: ending.path, warning: ending.warning,
            error: report.error)
        return log(of: task).ended(outcome, end, isNews: isNews)
    }
}
