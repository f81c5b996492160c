import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// Waits until tasks have settled, through restarts of the daemon: the tasks outlive it, and so does the waiting.
final class TaskWaiter {
    enum Ending: Equatable {
        /// Nobody wants to know more.
        case completed
        case settled(TaskStatus)
        case removed
    }

    /// The events that can end a wait.
    static let eventTypes: [TaskEvent.Kind] = [.completed, .failed, .cancelled, .paused, .removed]

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
    /// Heard to have completed, and not yet looked at: of many tasks, pages at the end cost less than a question each.
    private var unread: Set<TaskID> = []
    /// Those that are looked at in the end. What the history has no more of them has completed all the same, whichever
    /// look finds that.
    private var heardToComplete: Set<TaskID> = []
    private var wasSeen: Bool
    /// When the patience with an absent daemon ends; `nil` while it answers.
    private var patience: Deadline?
    /// What was last heard of tasks that have not settled; kept for the bars alone.
    private var latest: [TaskID: TaskStatus] = [:]
    private(set) var endings: [TaskID: Ending] = [:]

    /// - Parameters:
    ///   - ids: an id that stands twice is waited for once.
    ///   - client: a connection to begin with.
    ///   - isFollowing: `client` was subscribed to ``eventTypes`` before the tasks came to be, so that no look at
    ///     them is needed.
    ///   - wantsDetails: what became of a task that completed is asked for.
    ///   - connect: makes another, where that one ends.
    ///   - report: says what does not end the waiting.
    init(
        _ ids: [TaskID], client: any TaskSource, isFollowing: Bool = false, wantsDetails: Bool = true,
        deadline: Deadline = .never, view: ProgressView? = nil,
        connect: @escaping () throws(ClientError) -> any TaskSource,
        sleep: @escaping (_ seconds: Double) -> Void = {
            _ = usleep(UInt32($0 * 1_000_000))  // a sleep that a signal cuts short makes an earlier look
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

    private enum Pause {
        static let untilNextAttempt = 0.2
        /// How long a daemon may be away.
        static let patience = 60.0
    }

    /// - Throws: ``Failure``: an id is unknown, the deadline is over, or the daemon stays away.
    func run() throws(Failure) {
        while !pending.isEmpty {
            var strangers: [TaskID] = []
            do throws(ClientError) {
                let client = try connected()
                // A daemon that takes the connection and never answers holds nobody longer than that.
                client.deadline = deadline
                if !isSubscribed {
                    // Events first, then the tasks: what happens between the two is heard.
                    _ = try client.subscribe(after: nil, types: Self.eventTypes)
                    isSubscribed = true
                    strangers = try look(client)
                    patience = nil
                    if wasSeen {
                        strangers.forEach(endUnknown)
                    } else {
                        wasSeen = strangers.isEmpty
                    }
                }
                if wasSeen { try follow(client) }
                if pending.isEmpty, !unread.isEmpty {
                    heardToComplete.formUnion(unread)
                    swap(&pending, &unread)
                    try look(client).forEach(endUnknown)
                }
            } catch {
                try recover(from: error)
            }
            if !wasSeen, let id = strangers.first { throw Failure.unknown(id) }
        }
        if let view { draw(view, isLast: true) }
    }

    /// The tasks as they ended, in the order asked for; removed ones are not among them.
    var settled: [TaskStatus] {
        ids.compactMap { if case .settled(let task)? = endings[$0] { task } else { nil } }
    }

    /// Says which tasks did not complete.
    ///
    /// - Returns: whether all did.
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
            // A bar's last line has said so already.
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

    /// A daemon that went away may be restarting.
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
        guard let patience else {
            self.patience = .after(seconds: Pause.patience)
            if let view { draw(view, note: Failure.daemonAway.message) } else { report(.daemonAway) }
            return
        }
        if patience.isOver { throw Failure(error) }
        sleep(Pause.untilNextAttempt)
    }

    // MARK: - Looking

    private enum Scan {
        /// From this many tasks on, pages are cheaper than single questions.
        static let minimum = 200
        /// ... if no more than so many ids lie between for each that is wanted.
        static let sparseness: Int64 = 8
    }

    /// Asks about every pending task.
    ///
    /// - Returns: those that the daemon does not know.
    private func look(_ client: any TaskSource) throws(ClientError) -> [TaskID] {
        var unknown: [TaskID] = []
        guard let first = pending.min(), let last = pending.max(), pending.count >= Scan.minimum,
            (last.rawValue - first.rawValue) / Int64(pending.count) < Scan.sparseness
        else {
            for id in pending.sorted() {
                if let task = try client.taskIfKnown(id) { note(task) } else { unknown.append(id) }
            }
            return unknown
        }
        var missing = pending
        do {
            try client.forEachPage(filter: nil, limit: nil, after: TaskID(first.rawValue - 1), newest: nil) { page in
                for task in page where missing.remove(task.id) != nil { note(task) }
                return page.last.map { $0.id < last } ?? false
            }
        } catch let error as ClientError {
            throw error
        } catch {
            throw .malformedAnswer("\(error)")
        }
        return missing.sorted()
    }

    private func note(_ task: TaskStatus) {
        if task.isSettled { end(task.id, .settled(task)) } else if view != nil { latest[task.id] = task }
    }

    private func endUnknown(_ id: TaskID) { end(id, heardToComplete.contains(id) ? .completed : .removed) }

    private func end(_ id: TaskID, _ ending: Ending) {
        guard pending.remove(id) != nil else { return }
        endings[id] = ending
        latest[id] = nil
    }

    // MARK: - Following

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
            try look(client).forEach(endUnknown)
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
                note(task)
            } else {
                // The history may have no more of it.
                end(id, event.type == .completed ? .completed : .removed)
            }
        case .added, .updated, .resumed, .waiting, .retried, .gap: break
        }
    }

    // MARK: - Bars

    private func showsEach(_ view: ProgressView) -> Bool { ids.count <= view.capacity }

    private func redraw(_ view: ProgressView, _ client: any TaskSource) throws(ClientError) {
        if showsEach(view) {
            // An event on its way says what became of a task that is gone.
            for id in pending { if let task = try client.taskIfKnown(id) { note(task) } }
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
