import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// A waiter for tasks to settle. It survives restarts of the daemon, because the tasks do.
final class TaskWaiter {
    enum Ending: Equatable {
        /// A completed task whose details are not needed.
        case completed
        case settled(TaskStatus)
        case removed
    }

    /// The event types that can end a wait.
    static let eventTypes: Set<TaskEvent.Kind> = [.completed, .failed, .cancelled, .paused, .removed]

    private let ids: [TaskID]
    private let wantsDetails: Bool
    private let deadline: Deadline
    private let view: ProgressView?
    private let connect: () throws(ClientError) -> any TaskSource
    private let sleep: (_ seconds: Double) -> Void
    private let report: (Failure) -> Void
    private var client: (any TaskSource)?
    private var isSubscribed: Bool
    private var pending: Set<TaskID>
    /// Tasks reported as completed whose details are not read yet. For many tasks, pages at the end cost less than
    /// single requests.
    private var unread: Set<TaskID> = []
    /// Tasks that an event reported as completed. If one has left the history by the time it is read, it counts as
    /// completed.
    private var reportedComplete: Set<TaskID> = []
    private var wasSeen: Bool
    /// The deadline for an absent daemon to return; `nil` while the daemon answers.
    private var reconnectDeadline: Deadline?
    /// The last known status of pending tasks, kept only for the bars.
    private var latest: [TaskID: TaskStatus] = [:]
    private(set) var endings: [TaskID: Ending] = [:]

    /// - Parameters:
    ///   - ids: the tasks to wait for; duplicates are ignored.
    ///   - client: the initial connection.
    ///   - isFollowing: whether `client` was subscribed to ``eventTypes`` before the tasks were added, so that their
    ///     states need not be read first.
    ///   - wantsDetails: whether the final status of completed tasks is read.
    ///   - connect: creates a new connection after the current one ends.
    ///   - report: reports errors that do not end the wait.
    init(
        _ ids: [TaskID], client: any TaskSource, isFollowing: Bool = false, wantsDetails: Bool = true,
        deadline: Deadline = .never, view: ProgressView? = nil,
        connect: @escaping () throws(ClientError) -> any TaskSource,
        sleep: @escaping (_ seconds: Double) -> Void = {
            _ = usleep(UInt32($0 * 1_000_000))  // a signal that cuts the sleep short only causes an earlier attempt
        },
        report: @escaping (Failure) -> Void
    ) {
        var seen: Set<TaskID> = []
        self.ids = ids.filter { seen.insert($0).inserted }
        pending = seen
        self.client = client
        isSubscribed = isFollowing
        wasSeen = isFollowing
        self.wantsDetails = wantsDetails
        self.deadline = deadline
        self.view = view
        self.connect = connect
        self.sleep = sleep
        self.report = report
    }

    private enum RetryTiming {
        static let untilNextAttempt = 0.2
        /// The maximum time in seconds that the daemon may be absent.
        static let reconnectTimeout = 60.0
    }

    /// Waits until all tasks have settled.
    ///
    /// - Throws: ``Failure`` if an id is unknown, the deadline passes or the daemon stays absent.
    func run() throws(Failure) {
        while !pending.isEmpty {
            var unknownIDs: [TaskID] = []
            do throws(ClientError) {
                let client = try connected()
                // The deadline also covers a daemon that accepts the connection and never answers.
                client.deadline = deadline
                if !isSubscribed {
                    // Subscribe first, then read the tasks, so that a change between the two is reported.
                    _ = try client.subscribe(
                        after: nil, journal: nil, since: nil, filter: EventFilter(types: Self.eventTypes))
                    isSubscribed = true
                    unknownIDs = try readStates(client)
                    reconnectDeadline = nil
                    if wasSeen {
                        unknownIDs.forEach(endUnknown)
                    } else {
                        wasSeen = unknownIDs.isEmpty
                    }
                }
                if wasSeen { try follow(client) }
                if pending.isEmpty, !unread.isEmpty {
                    reportedComplete.formUnion(unread)
                    swap(&pending, &unread)
                    try readStates(client).forEach(endUnknown)
                }
            } catch {
                try recover(from: error)
            }
            if !wasSeen, let id = unknownIDs.first { throw Failure.unknown(id) }
        }
        if let view { draw(view, isLast: true) }
    }

    /// The final status of the tasks in the order of the ids, without removed tasks.
    var settled: [TaskStatus] {
        ids.compactMap { if case .settled(let task)? = endings[$0] { task } else { nil } }
    }

    /// Reports the tasks that did not complete.
    ///
    /// - Returns: whether all tasks completed.
    func conclude() -> Bool {
        var allCompleted = true
        for id in ids {
            let message: String
            var code = ErrorCode.wrongState
            switch endings[id] {
            case .completed: continue
            case .settled(let task) where task.state == .completed: continue
            case .settled(let task):
                message = Describe.ending(task)
                code = task.error?.code ?? code
            case .removed, nil:
                message = "task \(id) was removed"
                code = .unknownTask
            }
            allCompleted = false
            // The last line of the task's bar already shows the outcome.
            if let view, showsEach(view) { continue }
            var failure = Failure(.failed, code: code, message)
            failure.bare = true
            report(failure)
        }
        return allCompleted
    }

    // MARK: - The connection

    private func connected() throws(ClientError) -> any TaskSource {
        if let client { return client }
        let fresh = try connect()
        client = fresh
        return fresh
    }

    /// Waits before the next attempt if the daemon may be restarting; otherwise throws.
    private func recover(from error: ClientError) throws(Failure) {
        if deadline.isOver { throw Failure.waitedTooLong }
        switch error {
        case .noDaemon, .connectionLost: break
        case .rpc(let answer)
        where answer.code == RPCError.Number.unavailable && answer.data?.code != .cannotStart:
            break
        default: throw Failure(error)
        }
        client = nil
        isSubscribed = false
        guard let reconnectDeadline else {
            self.reconnectDeadline = .after(seconds: RetryTiming.reconnectTimeout)
            if let view { draw(view, note: Failure.daemonAway.message) } else { report(.daemonAway) }
            return
        }
        if reconnectDeadline.isOver { throw Failure(error) }
        sleep(RetryTiming.untilNextAttempt)
    }

    // MARK: - Reading the tasks

    private enum Scan {
        /// The number of tasks from which pages cost less than single requests.
        static let minimum = 200
        /// The upper limit on the average distance between pending ids; beyond it pages would contain too many other
        /// tasks.
        static let sparseness: Int64 = 8
    }

    /// Reads the state of every pending task.
    ///
    /// - Returns: the ids that the daemon does not know.
    private func readStates(_ client: any TaskSource) throws(ClientError) -> [TaskID] {
        var unknown: [TaskID] = []
        guard let first = pending.min(), let last = pending.max(), pending.count >= Scan.minimum,
            (last.rawValue - first.rawValue) / Int64(pending.count) < Scan.sparseness
        else {
            for id in pending.sorted() {
                if let task = try client.taskIfKnown(id) { record(task) } else { unknown.append(id) }
            }
            return unknown
        }
        var missing = pending
        do {
            try client.forEachPage(filter: nil, limit: nil, after: TaskID(first.rawValue - 1), newest: nil) { page in
                for task in page where missing.remove(task.id) != nil { record(task) }
                return page.last.map { $0.id < last } ?? false
            }
        } catch let error as ClientError {
            throw error
        } catch {
            throw .malformedAnswer("\(error)")
        }
        return missing.sorted()
    }

    private func record(_ task: TaskStatus) {
        if task.isSettled { end(task.id, .settled(task)) } else if view != nil { latest[task.id] = task }
    }

    private func endUnknown(_ id: TaskID) { end(id, reportedComplete.contains(id) ? .completed : .removed) }

    private func end(_ id: TaskID, _ ending: Ending) {
        guard pending.remove(id) != nil else { return }
        endings[id] = ending
        latest[id] = nil
    }

    // MARK: - Events

    private func follow(_ client: any TaskSource) throws(ClientError) {
        while !pending.isEmpty {
            if let view, view.nextDrawing.isOver { try redraw(view, client) }
            let limit = view.map { min(deadline, $0.nextDrawing) } ?? deadline
            if let event = try client.nextEvent(until: limit) {
                try handle(event, client)
            } else if deadline.isOver {
                throw .timedOut
            }
        }
    }

    private func handle(_ event: TaskEvent, _ client: any TaskSource) throws(ClientError) {
        if event.type == .gap {
            try readStates(client).forEach(endUnknown)
            return
        }
        guard let id = event.id, pending.contains(id) else { return }
        switch event.type {
        case .completed where !wantsDetails: end(id, .completed)
        case .completed where view == nil && ids.count >= Scan.minimum:
            pending.remove(id)
            unread.insert(id)
        case .completed, .failed, .cancelled, .paused, .removed:
            if let task = try client.taskIfKnown(id) {
                record(task)
            } else {
                // The task may have left the history.
                end(id, event.type == .completed ? .completed : .removed)
            }
        case .added, .started, .progress, .updated, .resumed, .waiting, .retried, .batchFinished, .gap: break
        }
    }

    // MARK: - Bars

    private func showsEach(_ view: ProgressView) -> Bool { ids.count <= view.capacity }

    private func redraw(_ view: ProgressView, _ client: any TaskSource) throws(ClientError) {
        if showsEach(view) {
            // A task that is gone is reported by an event still on its way.
            for id in pending { if let task = try client.taskIfKnown(id) { record(task) } }
        } else {
            let page = try client.page(
                TaskListParameters(
                    filter: TaskFilter(states: [.active]), after: pending.min().map { TaskID($0.rawValue - 1) }))
            latest = [:]
            for task in page.tasks where pending.contains(task.id) { latest[task.id] = task }
        }
        draw(view)
    }

    private func draw(_ view: ProgressView, isLast: Bool = false, note: String? = nil) {
        let layout = view.layout
        let note = note.map { [layout.note($0)] } ?? []
        guard showsEach(view) else {
            view.draw([layout.total(total)] + note)
            return
        }
        let now = Clock.now()
        view.draw(
            ids.map { id in
                switch endings[id] {
                case .completed: "task \(id)"
                case .settled(let task): layout.ending(task, whole: isLast)
                case .removed: layout.removed(id)
                case nil: latest[id].map { layout.line($0, now: now) } ?? "task \(id)"
                }
            } + note)
    }

    private var total: BarLayout.Total {
        var total = BarLayout.Total(tasks: ids.count, active: latest.count)
        for ending in endings.values {
            switch ending {
            case .completed: total.completed += 1
            case .settled(let task):
                total.bytes += task.bytesDone
                if task.state == .completed { total.completed += 1 }
            case .removed: break
            }
        }
        total.unsuccessful = endings.count - total.completed
        for task in latest.values {
            total.bytes += task.bytesDone
            total.rate += task.rate ?? 0
        }
        return total
    }
}
