import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// Bars of what runs and waits, until Ctrl-C.
final class OpenWatch {
    private enum Limit {
        /// The number of running tasks that are read for a drawing.
        static let active = 1_000
        /// The number of ended tasks that get a line in one drawing.
        static let endings = 20
        /// The number of tasks that did not complete and are kept for the summary.
        static let others = 1_000
    }

    /// The seconds between two looks at the tasks.
    private static let interval = 1.0

    private let context: Context
    private let view = ProgressView(style: Terminal.style(Environment.variables))
    private var client: ControlClient?
    private var tally = OpenTally()
    /// The tasks that did not complete, for the summary.
    private var others: [(id: TaskID, task: TaskStatus?)] = []
    private var nextLook = Deadline.after(seconds: 0)
    private var active: [TaskStatus] = []
    private var held: [TaskStatus] = []
    private var newEndings: [TaskID: TaskEvent] = [:]
    private let began = ContinuousClock.now
    private let start = Clock.now()

    init(_ context: Context) { self.context = context }

    /// Watches until Ctrl-C.
    ///
    /// - Throws: ``Failure`` if there is no daemon at first; ``ExitStatus/interrupted`` in the end.
    func run() throws {
        // Without a daemon nothing is drawn.
        _ = try connected()
        let ended = EventFilter(types: [.completed, .failed, .cancelled])
        let follower = EventFollower(
            after: nil, since: start, filter: ended,
            connect: { () throws(ClientError) in try self.context.connect(waits: true) },
            sleep: { seconds in
                _ = usleep(UInt32(seconds * 1_000_000))  // a signal that cuts the sleep short only causes a look
                if Terminal.isInterrupted { self.end() }
            },
            report: { self.draw(note: Failure.daemonAway.message) })
        Terminal.catchInterrupt()
        while !Terminal.isInterrupted {
            if context.deadline.isOver { end(with: .timedOut) }
            if nextLook.isOver {
                look()
                draw()
                nextLook = .after(seconds: Self.interval)
            }
            if let event = try follower.next(until: nextLook), let id = event.id { newEndings[id] = event }
        }
        end()
    }

    /// Shows the summary and ends the program, by default as Ctrl-C does.
    private func end(with status: ExitStatus = .interrupted) -> Never {
        look()
        draw(isLast: true)
        Terminal.showCursor()
        let elapsed = began.duration(to: .now) / .milliseconds(1)
        let summary = WaitSummary(
            tally: WaitTally(tasks: 0), tasks: 0, elapsed: 0, others: others, areOthersShown: true)
        Output.note(tally.headline(elapsed: Milliseconds(max(0, min(elapsed, 1e15)))))
        summary.remedies().forEach(Output.note)
        if tally.open > 0 { Output.note(context.farewell(.everything)) }
        exit(status.rawValue)
    }

    // MARK: - Looking

    /// Reads the tasks. A daemon that is away changes nothing; the reader of the events reports it.
    private func look() {
        do throws(ClientError) {
            let client = try connected()
            let status = try client.status()
            active = try client.page(TaskListParameters(filter: TaskFilter(states: [.active]), limit: Limit.active))
                .tasks
            tally.record(status, active, since: start)
            held = []
            let room = view.capacity - active.count
            if room > 0 {
                held = try client.page(TaskListParameters(filter: TaskFilter(states: [.waiting]), limit: room)).tasks
            }
            if room > held.count {
                let queued = TaskListParameters(
                    filter: TaskFilter(states: [.queued]), limit: room - held.count, order: .queue)
                held += try client.page(queued).tasks
            }
        } catch {
            client = nil
        }
    }

    private func connected() throws(ClientError) -> ControlClient {
        if let client { return client }
        let fresh = try context.connect(waits: true)
        fresh.answerTimeout = 5
        client = fresh
        return fresh
    }

    /// Returns the lines of the tasks that ended since the last drawing; they stay on the screen.
    private func endings(_ layout: BarLayout, isLast: Bool) -> [String] {
        if newEndings.isEmpty { return [] }
        // Without the daemon the lines wait for the next drawing.
        let client = try? connected()
        if client == nil, !isLast { return [] }
        var lines: [String] = []
        for (id, event) in newEndings.sorted(by: { $0.value.sequence < $1.value.sequence }) {
            let isShown = lines.count < Limit.endings
            let isCompleted = event.type == .completed
            var task: TaskStatus?
            if isShown || !isCompleted, let client { task = try? client.taskIfKnown(id) }
            tally.end(event, task)
            if !isCompleted, others.count < Limit.others { others.append((id, task)) }
            if isShown { lines.append(task.map(layout.ending) ?? EventLine.text(event)) }
        }
        if newEndings.count > lines.count { lines.append("… and \(newEndings.count - lines.count) more have ended") }
        newEndings = [:]
        return lines
    }

    private func draw(isLast: Bool = false, note: String? = nil) {
        var layout = view.layout
        let lasting = endings(layout, isLast: isLast)
        if isLast { return view.draw([], below: lasting) }
        let capacity = view.capacity
        let shown = (active + held).prefix(capacity)
        layout.idWidth = shown.map { $0.id.description.count }.max() ?? 0
        let now = Clock.now()
        var lines = shown.map { layout.line($0, now: now) }
        let open = tally.open
        if open > lines.count, lines.count >= capacity { lines.append(layout.others(open - lines.count)) }
        lines.append(layout.open(tally.total(of: active)))
        if let note { lines.append(layout.note(note)) }
        view.draw(lines, below: lasting)
    }
}
