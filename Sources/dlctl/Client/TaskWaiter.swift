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

    /// The event types that can end a wait or need a note.
    static let eventTypes: Set<TaskEvent.Kind> = [.completed, .failed, .cancelled, .paused, .removed, .waiting]

    private let ids: [TaskID]
    private let wantsDetails: Bool
    private let deadline: Deadline
    private let view: ProgressView?
    private let onEvent: ((TaskEvent) -> Void)?
    private let onEnding: ((TaskStatus) -> Void)?
    private let connect: () throws(ClientError) -> any TaskSource
    private let sleep: (_ seconds: Double) -> Void
    private let report: (Failure) -> Void
    private let note: (String) -> Void
    /// Whether tasks that begin to wait are told: nothing else shows them.
    private var tellsWaits: Bool { view == nil && onEvent == nil }
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
    private var tally: WaitTally
    /// Whether the tasks are few enough to read each of them for each drawing.
    private let readsEach: Bool
    /// Whether the tasks were added for this wait.
    private let areNew: Bool
    private let began = ContinuousClock.now
    /// The tasks whose last line is on the screen, in the order in which they ended, and those whose line is not yet.
    private var shownEndings: [TaskID] = []
    private var newEndings: [TaskID] = []
    /// The time of the next look at the tasks that wait, if there are too many to read each.
    private var nextWaitingLook = Deadline.after(seconds: 0)
    private var waitingTasks: [TaskStatus] = []
    /// The pending tasks that a user paused and that were named, and those to be named next.
    private var namedPaused: Set<TaskID> = []
    private var newPaused: [TaskID] = []
    /// The number of lines that told of paused tasks.
    private var pausedNotes = 0
    /// The notes that the next drawing places above the bars.
    private var newNotes: [String] = []
    /// The last cause for which each task was told to wait, and the time before which another one is not told.
    private var toldWaits: [TaskID: (cause: String, next: Deadline)] = [:]

    private enum Notes {
        /// The maximum number of tasks that are named in one note, or told to wait.
        static let tasks = 20
        /// The minimum time in seconds between two notes on a task.
        static let interval = 60.0
    }

    /// - Parameters:
    ///   - ids: the tasks to wait for; duplicates are ignored.
    ///   - client: the initial connection.
    ///   - isFollowing: whether `client` was subscribed to ``eventTypes`` before the tasks were added, so that their
    ///     states need not be read first.
    ///   - areKnown: whether the tasks existed a moment ago, so that an unknown id is that of a removed task.
    ///   - wantsDetails: whether the final status of completed tasks is read.
    ///   - onEvent: receives every event of the tasks that have not ended.
    ///   - onEnding: receives the final status of each task, as far as it is read.
    ///   - connect: creates a new connection after the current one ends.
    ///   - report: reports errors that do not end the wait.
    ///   - note: receives a line about tasks that a user paused, and about tasks that begin to wait if neither bars nor
    ///     events show them.
    init(
        _ ids: [TaskID], client: any TaskSource, isFollowing: Bool = false, areKnown: Bool = false,
        wantsDetails: Bool = true, deadline: Deadline = .never, view: ProgressView? = nil,
        onEvent: ((TaskEvent) -> Void)? = nil, onEnding: ((TaskStatus) -> Void)? = nil,
        connect: @escaping () throws(ClientError) -> any TaskSource,
        sleep: @escaping (_ seconds: Double) -> Void = {
            _ = usleep(UInt32($0 * 1_000_000))  // a signal that cuts the sleep short only causes an earlier attempt
        },
        report: @escaping (Failure) -> Void, note: @escaping (String) -> Void = { _ in }
    ) {
        var seen: Set<TaskID> = []
        self.ids = ids.filter { seen.insert($0).inserted }
        pending = seen
        tally = WaitTally(tasks: seen.count)
        readsEach = view.map { seen.count <= $0.capacity } ?? false
        areNew = isFollowing
        self.client = client
        isSubscribed = isFollowing
        wasSeen = isFollowing || areKnown
        self.wantsDetails = wantsDetails
        self.deadline = deadline
        self.view = view
        self.onEvent = onEvent
        self.onEnding = onEnding
        self.connect = connect
        self.sleep = sleep
        self.report = report
        self.note = note
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
                        after: nil, journal: nil, since: nil,
                        filter: EventFilter(types: onEvent == nil ? Self.eventTypes : nil))
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

    /// The summary of the wait after its end.
    var summary: WaitSummary {
        let elapsed = began.duration(to: .now) / .milliseconds(1)
        let others = ids.compactMap { id -> (TaskID, TaskStatus?)? in
            switch endings[id] {
            case .completed: nil
            case .settled(let task): task.state == .completed ? nil : (id, task)
            case .removed, nil: (id, nil)
            }
        }
        return WaitSummary(
            tally: tally, tasks: ids.count, elapsed: Milliseconds(max(0, min(elapsed, 1e15))), others: others,
            areOthersShown: readsEach)
    }

    /// The final status of the tasks in the order of the ids, without removed tasks.
    var settled: [TaskStatus] { ids.compactMap(final) }

    private func final(_ id: TaskID) -> TaskStatus? {
        if case .settled(let task)? = endings[id] { task } else { nil }
    }

    /// Returns what is known of the tasks after a wait that was cut short.
    ///
    /// - Parameter client: a connection for reading those that have not ended; `nil` if there is none.
    func known(_ client: (any TaskSource)?) -> [TaskStatus] {
        var current: [TaskID: TaskStatus] = [:]
        // A daemon that does not answer leaves what is known already.
        if let client { _ = try? read(pending.union(unread), client) { current[$0.id] = $0 } }
        return ids.compactMap { final($0) ?? current[$0] }
    }

    /// Reports the tasks that did not complete.
    ///
    /// - Parameter reports: whether the tasks are reported; not if a summary names them.
    /// - Returns: whether all tasks completed.
    func conclude(reports: Bool = true) -> Bool {
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
            if !reports { continue }
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

    /// Records the state of every pending task.
    ///
    /// - Returns: the ids that the daemon does not know.
    private func readStates(_ client: any TaskSource) throws(ClientError) -> [TaskID] {
        let unknown = try read(pending, client, record)
        namePaused()
        return unknown
    }

    /// Reads tasks.
    ///
    /// - Returns: the ids that the daemon does not know.
    private func read(
        _ ids: Set<TaskID>, _ client: any TaskSource, _ body: (TaskStatus) -> Void
    ) throws(ClientError) -> [TaskID] {
        var unknown: [TaskID] = []
        guard let first = ids.min(), let last = ids.max(), ids.count >= Scan.minimum,
            (last.rawValue - first.rawValue) / Int64(ids.count) < Scan.sparseness
        else {
            for id in ids.sorted() {
                if let task = try client.taskIfKnown(id) { body(task) } else { unknown.append(id) }
            }
            return unknown
        }
        var missing = ids
        do {
            try client.forEachPage(filter: nil, limit: nil, after: TaskID(first.rawValue - 1), newest: nil) { page in
                for task in page where missing.remove(task.id) != nil { body(task) }
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
        if task.isSettled {
            end(task.id, .settled(task))
        } else {
            tally.record(task, isNew: areNew)
            if view != nil { latest[task.id] = task }
            observe(task)
        }
    }

    // MARK: - Notes

    /// Notes that a task is paused, or waits, if that was not told yet.
    private func observe(_ task: TaskStatus) {
        if task.state != .paused {
            namedPaused.remove(task.id)
        } else if namedPaused.insert(task.id).inserted {
            newPaused.append(task.id)
        }
        guard tellsWaits, task.state == .waiting, tells(ofWaitOf: task.id, task.reason, task.error) else { return }
        let cause = Self.cause(task.reason, task.error)
        toldWaits[task.id] = (cause, .after(seconds: Notes.interval))
        note("task \(task.id) is \(Describe.state(task, now: Clock.now(), namesState: true))")
    }

    /// Returns whether a note is due on a task that waits. The reasons that the user asked for need none.
    private func tells(ofWaitOf id: TaskID, _ reason: TaskReason?, _ error: TaskFailure?) -> Bool {
        guard let reason, reason != .scheduled, reason != .dependency else { return false }
        guard let told = toldWaits[id] else { return toldWaits.count < Notes.tasks }
        return told.cause != Self.cause(reason, error) && told.next.isOver
    }

    private static func cause(_ reason: TaskReason?, _ error: TaskFailure?) -> String {
        "\(reason?.rawValue ?? "") \(error?.code.rawValue ?? "")"
    }

    /// Names the tasks that are paused since the last call, in one line.
    private func namePaused() {
        guard !newPaused.isEmpty, pausedNotes <= Notes.tasks else { return newPaused = [] }
        pausedNotes += 1
        guard pausedNotes <= Notes.tasks else {
            newPaused = []
            return tell("more tasks are paused: dlctl list paused")
        }
        let ids = newPaused.prefix(Notes.tasks).map(\.description).joined(separator: " ")
        let subject = newPaused.count == 1 ? "task \(ids) is" : "\(newPaused.count) tasks are"
        let text = "\(subject) paused: dlctl resume \(ids)" + (newPaused.count > Notes.tasks ? " …" : "")
        newPaused = []
        tell(text)
    }

    private func tell(_ text: String) {
        if view == nil { note(text) } else { newNotes.append(text) }
    }

    private func endUnknown(_ id: TaskID) { end(id, reportedComplete.contains(id) ? .completed : .removed) }

    private func end(_ id: TaskID, _ ending: Ending) {
        guard pending.remove(id) != nil else { return }
        latest[id] = nil
        var isCompleted = false
        var task: TaskStatus?
        switch ending {
        case .completed: isCompleted = true
        case .settled(let settled):
            task = settled
            isCompleted = settled.state == .completed
        case .removed: break
        }
        tally.end(id, task, isCompleted: isCompleted, isNew: areNew)
        if let task { onEnding?(task) }
        if view == nil {
            endings[id] = ending
        } else if readsEach {
            endings[id] = ending
            newEndings.append(id)
        } else {
            // The details of many completed tasks are not shown.
            endings[id] = isCompleted ? .completed : ending
        }
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
        onEvent?(event)
        defer { namePaused() }
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
        case .waiting where tellsWaits && tells(ofWaitOf: id, event.reason, event.error):
            if let task = try client.taskIfKnown(id) { record(task) }
        case .added, .started, .progress, .updated, .resumed, .waiting, .retried, .batchFinished, .gap: break
        }
    }

    // MARK: - Bars

    private func redraw(_ view: ProgressView, _ client: any TaskSource) throws(ClientError) {
        if readsEach {
            // A task that is gone is reported by an event still on its way.
            for id in pending { if let task = try client.taskIfKnown(id) { record(task) } }
            namePaused()
        } else if let first = pending.min() {
            let before = TaskID(first.rawValue - 1)
            latest = [:]
            let active = try client.page(TaskListParameters(filter: TaskFilter(states: [.active]), after: before))
            for task in active.tasks where pending.contains(task.id) { record(task) }
            if nextWaitingLook.isOver {
                let others = try client.page(
                    TaskListParameters(
                        filter: TaskFilter(states: [.waiting, .queued, .paused]), limit: view.capacity, after: before))
                waitingTasks = others.tasks
                nextWaitingLook = .after(seconds: 1)
            }
            for task in waitingTasks where pending.contains(task.id) && latest[task.id] == nil { record(task) }
        }
        draw(view)
    }

    private func draw(_ view: ProgressView, isLast: Bool = false, note: String? = nil) {
        var layout = view.layout
        layout.idWidth = ids.max().map { $0.description.count } ?? 0
        if view.clearsScreen {
            newEndings = shownEndings + newEndings
            shownEndings = []
        }
        let lasting = newEndings.compactMap { id -> String? in
            switch endings[id] {
            case .settled(let task): layout.ending(task)
            case .removed: layout.removed(id)
            case .completed, nil: nil
            }
        }
        shownEndings += newEndings
        newEndings = []
        let notes = newNotes
        newNotes = []
        view.draw(
            isLast
                ? []
                : rows(layout, capacity: view.capacity) + [layout.total(total)]
                    + (note.map { [layout.note($0)] } ?? []),
            below: notes + lasting)
    }

    /// Returns the lines of the tasks that have not ended: those that run first, then those of which the reason for
    /// waiting is known.
    private func rows(_ layout: BarLayout, capacity: Int) -> [String] {
        let now = Clock.now()
        let known = latest.values.sorted { ($0.state == .active ? 0 : 1, $0.id) < ($1.state == .active ? 0 : 1, $1.id) }
        var lines = known.prefix(capacity).map { layout.line($0, now: now) }
        if readsEach, lines.count < capacity {
            lines += pending.filter { latest[$0] == nil }.sorted().prefix(capacity - lines.count).map(layout.bare)
        }
        if pending.count > lines.count { lines.append(layout.others(pending.count - lines.count)) }
        return lines
    }

    private var total: BarLayout.Total {
        let rate = latest.values.reduce(Int64(0)) { $0.addingClamped($1.rate ?? 0) }
        return tally.total(rate: rate)
    }
}
