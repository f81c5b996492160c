import TaskModel

/// The progress of running tasks that a subscriber is told of, at most four times a second for each task.
struct ProgressReports {
    /// The time in milliseconds between two reports of a task.
    static let interval: Milliseconds = 250

    /// The monotonic time of the last inquiry.
    private var last: Milliseconds?
    /// The values that were last reported for each running task.
    private var known: [TaskID: Values] = [:]
    /// The statuses still to be reported, the next one last.
    private var due: [TaskStatus] = []

    private struct Values: Equatable {
        var bytesDone: Int64
        var bytesTotal: Int64?
        var rate: Int64?
        var connections: Int

        init(_ status: TaskStatus) {
            bytesDone = status.bytesDone
            bytesTotal = status.bytesTotal
            rate = status.rate
            connections = status.connections
        }
    }

    /// Whether the running tasks may be inquired about.
    func isDue(_ now: Milliseconds) -> Bool {
        due.isEmpty && last.map { now - $0 >= Self.interval } ?? true
    }

    /// Returns the time in milliseconds until the next inquiry; `nil` if none is needed before the next event.
    ///
    /// - Parameter hasInquired: whether the last inquiry was made since the last event. If no task ran then, the next
    ///   start is an event. If an event came after the inquiry, a task may run by now.
    func pause(_ now: Milliseconds, hasInquired: Bool) -> Milliseconds? {
        guard let last, !(known.isEmpty && hasInquired) else { return nil }
        return max(1, Self.interval - (now - last))
    }

    /// Sets the statuses of all running tasks. Those that have changed are reported.
    mutating func set(_ running: [TaskStatus], now: Milliseconds) {
        last = now
        var values: [TaskID: Values] = [:]
        values.reserveCapacity(running.count)
        due = []
        for status in running.reversed() {
            let current = Values(status)
            values[status.id] = current
            if known[status.id] != current { due.append(status) }
        }
        known = values
    }

    /// Returns the next events.
    ///
    /// - Parameters:
    ///   - sequence: the number of the last event of the journal that the subscriber was sent.
    ///   - now: the time of the events.
    mutating func take(_ limit: Int, after sequence: Int64, at now: Milliseconds) -> [TaskEvent] {
        let taken = due.suffix(limit)
        due.removeLast(taken.count)
        return taken.reversed().map { TaskEvent(progressOf: $0, sequence: sequence, at: now) }
    }
}

extension TaskEvent {
    /// Creates an event that reports a running task.
    init(progressOf status: TaskStatus, sequence: Int64, at now: Milliseconds) {
        self.init(sequence: sequence, at: now, type: .progress, id: status.id, state: status.state)
        kind = status.kind
        batch = status.batch
        key = status.key
        owner = status.owner
        url = status.url
        path = status.path
        bytesDone = status.bytesDone
        bytesTotal = status.bytesTotal
        progress = Progress(rate: status.rate, eta: status.eta, connections: status.connections)
    }
}
