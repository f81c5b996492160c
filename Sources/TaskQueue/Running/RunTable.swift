import TaskModel
import Transfer

/// The running tasks, and the tasks that commands hold. None of them may be started.
struct RunTable: BusyTasks {
    /// The maximum number of running tasks, including those that have lent their slot, unless more may use the network.
    private static let usualLimit = 4_096

    /// The maximum number of running tasks.
    private var limit = Self.usualLimit
    /// The maximum number of tasks that have received all bytes and whose conclusion is being written. The limit applies
    /// back-pressure to the network where the disk cannot keep up; see ``QueueSettings/endingTasks``.
    private var endingLimit = QueueSettings.mostEndingTasks
    /// The number of tasks that hold no slot any more.
    private var ending = 0
    private(set) var runs: [TaskID: RunningTask] = [:]
    private let changes: ChangeCount
    /// The tasks that commands are processing, with the number of commands: by the owner whose tasks a command may
    /// change, `nil` for those of everybody. A command may name any ids, but holds only tasks that it may change.
    private var held: [UInt32?: [TaskID: Int]] = [:]
    /// The number of held tasks from which on none of their owner's is started: leaving out each would cost more than
    /// waiting for the command.
    private static let restingFrom = 500

    init(changes: ChangeCount) { self.changes = changes }

    subscript(id: TaskID) -> RunningTask? { runs[id] }

    var count: Int { runs.count }

    var isEmpty: Bool { runs.isEmpty }

    /// The number of tasks that may be added.
    var room: Int { max(0, min(limit - runs.count, endingLimit - ending)) }

    /// Applies the limits of the settings.
    mutating func apply(_ settings: QueueSettings) {
        endingLimit = settings.endingTasks
        limit = max(Self.usualLimit, settings.activeTasks + settings.endingTasks)
    }

    func isBusy(_ id: TaskID, of owner: UInt32) -> Bool {
        runs[id] != nil || held[owner]?[id] != nil || held[nil]?[id] != nil
    }

    func busy(of owner: UInt32) -> Set<TaskID> {
        var busy = Set(runs.keys)
        for held in [held[owner], held[nil]] { if let held { busy.formUnion(held.keys) } }
        return busy
    }

    func isResting(_ owner: UInt32) -> Bool { held[owner]?.count ?? 0 >= Self.restingFrom }

    mutating func insert(_ run: RunningTask) {
        runs[run.record.id] = run
        changes.add()
    }

    /// Counts a change of tasks that do not run, such as the end of a wait.
    func countChange() { changes.add() }

    mutating func remove(_ id: TaskID) -> RunningTask? {
        changes.add()
        guard let run = runs.removeValue(forKey: id) else { return nil }
        if !run.activity.holdsSlot { ending -= 1 }
        return run
    }

    /// Releases the slot of a task that uses the network no more.
    ///
    /// - Returns: the use of the slot until now; `nil` where it was released before.
    mutating func releaseSlot(of run: RunningTask) -> RunActivity.Slot? {
        guard let slot = run.activity.releaseSlot() else { return nil }
        ending += 1
        return slot
    }

    /// Prevents tasks from starting until ``release(_:of:)``.
    ///
    /// - Parameter owner: the uid whose tasks are held; `nil` for the tasks of all users.
    mutating func hold(_ ids: [TaskID], of owner: UInt32?) {
        for id in ids { held[owner, default: [:]][id, default: 0] += 1 }
    }

    mutating func release(_ ids: [TaskID], of owner: UInt32?) {
        for id in ids {
            let count = (held[owner]?[id] ?? 1) - 1
            held[owner]?[id] = count > 0 ? count : nil
        }
        if held[owner]?.isEmpty == true { held[owner] = nil }
    }

    // MARK: Totals

    /// Returns the number of running tasks.
    ///
    /// - Parameter owner: the uid of the owner; `nil` for the tasks of all users.
    func count(of owner: UInt32?) -> Int {
        owner == nil ? runs.count : runs.values.count { $0.record.owner == owner }
    }

    /// Returns the total throughput, in bytes per second.
    func rates(now: Milliseconds) -> (download: Int64, upload: Int64) {
        var rates: (download: Int64, upload: Int64) = (0, 0)
        for run in runs.values {
            let rate = run.activity.rate(run.progress.transferredBytes, now: now) ?? 0
            if run.record.specification.kind == .download { rates.download += rate } else { rates.upload += rate }
        }
        return rates
    }

    /// Whether another task is transferring data with a host.
    func isAtWork(_ hostFingerprint: Int64, besides run: RunningTask) -> Bool {
        runs.values.contains {
            $0.place.hostFingerprint == hostFingerprint && $0 !== run && !$0.lifecycle.hasEnded && !$0.activity.isSilent
                && $0.progress.transferredBytes > 0
        }
    }
}
