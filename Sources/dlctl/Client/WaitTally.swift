import TaskModel

/// The byte counts of the tasks that are waited for. The sums are kept up to date, so that their cost does not depend
/// on the number of tasks.
struct WaitTally {
    private struct Size {
        var done: Int64
        var total: Int64?
        /// The bytes that had been fetched when the task was first seen.
        var fetchedBefore: Int64
    }

    private let tasks: Int
    /// The sizes of the tasks seen that have not ended.
    private var sizes: [TaskID: Size] = [:]
    private var pending: (done: Int64, total: Int64, unknown: Int) = (0, 0, 0)
    private(set) var completed = 0
    private(set) var others = OtherEndings()
    private var ended: (done: Int64, total: Int64) = (0, 0)
    /// The bytes of the completed tasks.
    private(set) var completedBytes: Int64 = 0
    /// The bytes received or sent during the wait by the tasks that ended.
    private(set) var fetched: Int64 = 0

    /// - Parameter tasks: the number of tasks that are waited for.
    init(tasks: Int) { self.tasks = tasks }

    /// Records the status of a task that has not ended.
    ///
    /// - Parameter isNew: whether the task was added for this wait, so that all of its bytes count.
    mutating func record(_ task: TaskStatus, isNew: Bool) {
        let before = sizes[task.id]
        if let before { take(before) }
        let size = Size(
            done: task.bytesDone, total: task.bytesTotal,
            fetchedBefore: before?.fetchedBefore ?? (isNew ? 0 : task.bytesFetched))
        sizes[task.id] = size
        pending.done = pending.done.addingClamped(size.done)
        if let total = size.total { pending.total = pending.total.addingClamped(total) } else { pending.unknown += 1 }
    }

    private mutating func take(_ size: Size) {
        pending.done = pending.done.subtractingClamped(size.done)
        if let total = size.total {
            pending.total = pending.total.subtractingClamped(total)
        } else {
            pending.unknown -= 1
        }
    }

    /// Records the end of a task.
    ///
    /// - Parameters:
    ///   - task: the final status; `nil` if it is not known.
    ///   - isCompleted: whether the task completed.
    mutating func end(_ id: TaskID, _ task: TaskStatus?, isCompleted: Bool, isNew: Bool) {
        let before = sizes.removeValue(forKey: id)
        if let before { take(before) }
        if isCompleted { completed += 1 } else { others.add(task?.state) }
        let done = task?.bytesDone ?? before?.done ?? 0
        ended.done = ended.done.addingClamped(done)
        ended.total = ended.total.addingClamped(isCompleted ? done : task?.bytesTotal ?? done)
        if isCompleted { completedBytes = completedBytes.addingClamped(done) }
        if let task {
            let start = before?.fetchedBefore ?? (isNew ? 0 : task.bytesFetched)
            fetched = fetched.addingClamped(max(0, task.bytesFetched.subtractingClamped(start)))
        }
    }

    /// Returns the totals.
    ///
    /// - Parameter rate: the throughput of the tasks that run.
    func total(rate: Int64) -> BarLayout.Total {
        let isKnown = pending.unknown == 0 && sizes.count + completed + others.count == tasks
        return BarLayout.Total(
            tasks: tasks, completed: completed, others: others,
            bytes: ended.done.addingClamped(pending.done),
            bytesTotal: isKnown ? ended.total.addingClamped(pending.total) : nil, rate: rate)
    }
}
