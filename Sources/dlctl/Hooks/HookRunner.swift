import ControlClient
import Dispatch
import Glibc
import Synchronization
import TaskModel

/// A runner of a command for each event.
///
/// The main thread reads the events, and each job has a thread that runs one command at a time.
final class HookRunner: Sendable {
    private struct State {
        var queue: EventLanes
        let cursor: HookCursor?
        /// The numbers of the threads that run no command.
        var free: [Int]
        /// The commands that run, by their events.
        var runs: [Int64: HookRun] = [:]
        /// Whether the main thread waits for the end of a command.
        var isWaiting = false
    }

    /// The time in seconds without an event after which the cursor is moved on.
    private static let idleTime: Double = 3_600

    private let command: String
    private let connector: DaemonConnector
    private let lock: Int32?
    private let threads: [DispatchQueue]
    private let retries: Int
    private let limit: Milliseconds?
    private let deadline: Deadline
    private let ended = DispatchSemaphore(value: 0)
    private let state: Mutex<State>
    private var hasCursor: Bool { state.withLock { $0.cursor != nil } }

    /// - Parameters:
    ///   - command: the command, for `/bin/sh`.
    ///   - limit: the time in milliseconds after which a command is ended; `nil` for no limit.
    ///   - deadline: the time at which a command is ended, and after which none begins.
    ///   - position: the event after which the events start.
    init(
        _ command: String, jobs: Int, retries: Int, limit: Milliseconds? = nil, until deadline: Deadline = .never,
        after position: Int64, cursor: sending HookCursor?, connector: DaemonConnector
    ) {
        self.command = command
        self.retries = retries
        self.limit = limit
        self.deadline = deadline
        self.connector = connector
        lock = cursor?.jobsLock
        threads = (0..<jobs).map { DispatchQueue(label: "dlctl-hook-\($0)") }
        state = Mutex(
            State(
                queue: EventLanes(jobs: jobs, retries: retries, after: position), cursor: cursor,
                free: Array((0..<jobs).reversed())))
    }

    /// Runs the command for each event of `follower`, until it fails or the time is over. Commands that run then are
    /// ended.
    func run(_ follower: EventFollower) throws(Failure) {
        while true {
            waitUntil(\.hasRoom)
            if deadline.isOver {
                waitUntil(\.isIdle)
                throw .timeIsOver
            }
            let next: TaskEvent?
            do throws(ClientError) {
                next = try follower.next(until: min(deadline, hasCursor ? .after(seconds: Self.idleTime) : .never))
            } catch {
                throw Failure(error)
            }
            guard let event = next else {
                if !deadline.isOver { try advance(follower) }
                continue
            }
            if event.type == .gap {
                let isReplaced = isReplaced(event.sequence, follower.journal)
                Output.note("dlctl: \(Self.skipped(to: event.sequence, isReplaced: isReplaced))")
                try skip(to: event.sequence, in: follower.journal, isReplaced: isReplaced)
                continue
            }
            let journal = follower.journal
            try state.withLock { state throws(Failure) in
                // Another journal without a gap has everything in common with the earlier one so far.
                if let cursor = state.cursor, let journal, cursor.journal != journal { try cursor.continueIn(journal) }
                if state.cursor?.done.contains(event.sequence) == true {
                    state.queue.skip(event.sequence)
                } else {
                    state.queue.add(event)
                }
            }
            start()
        }
    }

    /// Moves the cursor on where no event of the hook's kind has happened for long. Otherwise it would be told of lost
    /// events that do not concern it, once the journal is shortened.
    private func advance(_ follower: EventFollower) throws(Failure) {
        let (journal, position) = state.withLock { ($0.cursor?.journal, $0.queue.isEmpty ? $0.queue.lastSeen : nil) }
        guard let journal, let position, let client = try? connector.connect(),
            let page = try? client.eventPage(after: position, journal: journal, filter: follower.filter, limit: 1),
            page.events.isEmpty, page.next == nil, page.journal == journal, page.last > position
        else { return }
        try state.withLock { state throws(Failure) in
            try state.cursor?.set(position: page.last, journal: journal)
            state.queue.skip(page.last)
        }
        follower.skip(to: page.last)
    }

    private func waitUntil(_ isMet: (EventLanes) -> Bool) {
        while state.withLock({ state in
            state.isWaiting = !isMet(state.queue)
            return state.isWaiting
        }) { ended.wait() }
    }

    /// Whether a gap up to `sequence` is the beginning of another journal, because the daemon's database was replaced.
    private func isReplaced(_ sequence: Int64, _ journal: String?) -> Bool {
        state.withLock { sequence < $0.queue.lastSeen || ($0.cursor.map { $0.journal != journal } ?? false) }
    }

    /// Returns a sentence on the events that a gap stands for.
    private static func skipped(to sequence: Int64, isReplaced: Bool) -> String {
        guard isReplaced else {
            return "events up to number \(sequence) are no longer in the journal; they are skipped"
        }
        return "the daemon has another database than before; "
            + (sequence > 0 ? "events of the earlier one after number \(sequence)" : "the events of the earlier one")
            + " are not in it and are skipped"
    }

    /// Goes on after a gap, in another journal if the daemon's database was replaced.
    private func skip(to sequence: Int64, in journal: String?, isReplaced: Bool) throws(Failure) {
        guard isReplaced else { return state.withLock { $0.queue.skip(sequence) } }
        waitUntil(\.isEmpty)
        try state.withLock { state throws(Failure) in
            try state.cursor?.set(position: sequence, journal: journal)
            state.queue = EventLanes(jobs: threads.count, retries: retries, after: sequence)
        }
    }

    /// Starts the commands that may run.
    private func start() {
        while let (thread, entry) = next() {
            threads[thread].async { self.run(entry, on: thread) }
        }
    }

    private func next() -> (thread: Int, entry: EventLanes.Entry)? {
        let result = state.withLock { state -> Result<(thread: Int, entry: EventLanes.Entry)?, Failure> in
            do throws(Failure) {
                if let cursor = state.cursor, cursor.isLong {
                    // A shell that is about to record its success must not write to the file that is replaced.
                    guard state.queue.isIdle else { return .success(nil) }
                    try cursor.set(position: state.queue.position, journal: cursor.journal)
                }
            } catch {
                return .failure(error)
            }
            guard !deadline.isOver, let thread = state.free.last, let entry = state.queue.next() else {
                return .success(nil)
            }
            state.free.removeLast()
            return .success((thread, entry))
        }
        switch result {
        case .success(let found): return found
        case .failure(let failure): end(failure)
        }
    }

    // MARK: On a job's thread

    private func run(_ entry: EventLanes.Entry, on thread: Int) {
        let event = entry.event
        let output = Output(STDOUT_FILENO)
        let input = HookInput.json(event, event.id.flatMap(task), output)
        let path = state.withLock { $0.cursor?.path }
        var process = HookProcess(
            command: command, variables: HookInput.variables(event), input: Array((input + "\n").utf8))
        if let path, let lock { process.record = (path, event.sequence, lock) }
        process.limit = [limit.map { Double($0) / 1_000 }, deadline.secondsLeft].compactMap(\.self).min()
        process.started = {
            self.record(HookRun(process: $0, since: Clock.now(), event: event, command: self.command), of: event)
        }
        process.runsLong = { _ in
            guard let run = self.state.withLock({ $0.runs[event.sequence] }) else { return }
            Output.note("dlctl: the command \(run.words(now: Clock.now()))")
        }
        let ending = process.run()
        record(nil, of: event)
        do throws(Failure) {
            try finish(entry, ending, input)
        } catch {
            end(error)
        }
        let isAwaited = state.withLock { state in
            state.free.append(thread)
            defer { state.isWaiting = false }
            return state.isWaiting
        }
        if isAwaited { ended.signal() }
        start()
    }

    /// Records the command that runs for an event; `nil` if it has ended.
    private func record(_ run: HookRun?, of event: TaskEvent) {
        state.withLock { state in
            state.runs[event.sequence] = run
            state.cursor?.record(state.runs.values.sorted { $0.event < $1.event })
        }
    }

    /// Returns the task as it is now; `nil` where it is removed, or the daemon is away.
    private func task(_ id: TaskID) -> TaskStatus? {
        guard let client = try? connector.connect() else { return nil }
        return (try? client.taskIfKnown(id)) ?? nil
    }

    private func finish(_ entry: EventLanes.Entry, _ ending: HookProcess.Ending, _ input: String) throws(Failure) {
        let event = entry.event
        if case .failure = ending, deadline.isOver {
            let later = hasCursor ? "; it runs again with the next run" : ""
            Output.note(
                "dlctl: the command for event \(event.sequence) was ended with the time of --timeout\(later)")
            _ = state.withLock { $0.queue.ended(event.sequence, isSuccess: false) }  // nothing else starts
            return
        }
        // The success, or that the command is given up, is recorded before a later event of the task may start.
        switch ending {
        case .success: try record(event, isWritten: true)
        case .unrecorded: try record(event, isWritten: false)
        case .failure where state.withLock({ $0.queue.isLastAttempt(event.sequence) }): try keep(event, input)
        case .failure: break
        }
        let outcome = state.withLock { state in
            var isSuccess = true
            if case .failure = ending { isSuccess = false }
            return state.queue.ended(event.sequence, isSuccess: isSuccess)
        }
        guard case .failure(let reason) = ending else { return }
        let subject = "dlctl: the command for event \(event.sequence)" + (event.id.map { " of task \($0)" } ?? "")
        switch outcome {
        case .done: break
        case .retry(let seconds):
            Output.note("\(subject) failed: \(reason); trying again in \(Int(seconds)) s")
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
                self.state.withLock { $0.queue.isDue(event) }
                self.start()
            }
        case .givenUp: Output.note("\(subject) failed: \(reason); given up, and kept in \(try deadLetters())")
        }
    }

    /// Keeps an event whose command is given up, and records it as done.
    private func keep(_ event: TaskEvent, _ input: String) throws(Failure) {
        let file = try deadLetters()
        try state.withLock { state throws(Failure) in
            try HookCursor.addDeadLetter(input, to: file)
            try state.cursor?.add(
                event.sequence, isWritten: false, position: state.queue.position(without: event.sequence))
        }
    }

    private func deadLetters() throws(Failure) -> String {
        if let file = state.withLock({ $0.cursor?.deadLetters }) { return file }
        return try HookCursor.deadLettersWithoutCursor()
    }

    private func record(_ event: TaskEvent, isWritten: Bool) throws(Failure) {
        try state.withLock { state throws(Failure) in
            try state.cursor?.add(
                event.sequence, isWritten: isWritten, position: state.queue.position(without: event.sequence))
        }
    }

    /// Ends the program: without its cursor it must not run commands.
    private func end(_ failure: Failure) -> Never {
        failure.report(json: false)
        exit(failure.status.rawValue)
    }
}
