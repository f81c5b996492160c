import ControlClient
import ControlProtocol
import Dispatch
import Synchronization
import TaskModel
import TerminalScreen

/// The connection of the screen to the daemon. A thread of its own asks about once a second, carries out changes, and
/// connects again after the daemon went away.
final class TopFeed: Sendable {
    /// The results of one round of calls.
    struct Round: Sendable {
        var query: TopQuery
        var status: DaemonStatus
        var tasks: [TaskStatus]
        /// Whether there are tasks beyond those.
        var hasMore: Bool
        /// The details of the task that the query names.
        var detail: TaskDetail?
        var moment: Milliseconds
    }

    enum Message: Sendable {
        case round(Round)
        /// The daemon does not answer.
        case away(since: Milliseconds, String)
        /// The answer to a change; without one, to all that wait.
        case result(TopMessage, to: TopAction? = nil)
    }

    private enum Timing {
        static let interval: Int32 = 1_000
        /// A round of calls may take up this share of the time; longer rounds are made less often.
        static let share: Int32 = 30
        static let maximumInterval: Int32 = 15_000
        static let untilNextAttempt: Int32 = 500
        /// The seconds after which a daemon that does not answer counts as away.
        static let answerTimeout = 10.0
        /// The number of changes that may wait for the daemon.
        static let actions = 100
        /// The maximum number of pages of one list.
        static let pages = 10
    }

    private struct State {
        var query: TopQuery
        var actions: [TopAction] = []
        var messages: [Message] = []
        var isStopped = false
    }

    private let connector: DaemonConnector
    private let state: Mutex<State>
    /// Wakes the thread for a new query or a change.
    private let wake: WakeSignal
    /// Wakes the screen for a message.
    private let screen: WakeSignal

    init(connector: DaemonConnector, query: TopQuery, screen: WakeSignal) throws(ScreenError) {
        self.connector = connector
        self.screen = screen
        wake = try WakeSignal()
        state = Mutex(State(query: query))
    }

    // MARK: - For the screen

    func start() {
        DispatchQueue(label: "dlctl-top").async { self.run() }
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        wake.send()
    }

    /// Asks another question from now on.
    func ask(_ query: TopQuery) {
        let isNew = state.withLock { state in
            defer { state.query = query }
            return state.query != query
        }
        if isNew { wake.send() }
    }

    /// Queues a change.
    ///
    /// - Returns: whether there was room for it.
    func perform(_ action: TopAction) -> Bool {
        let isQueued = state.withLock { state in
            guard state.actions.count < Timing.actions else { return false }
            state.actions.append(action)
            return true
        }
        wake.send()
        return isQueued
    }

    /// Returns the messages since the last call, oldest first.
    func take() -> [Message] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    // MARK: - The thread

    private func run() {
        var client: ControlClient?
        while let (query, actions) = next() {
            let start = Clock.now()
            var delay = Timing.interval
            do throws(ClientError) {
                let connection: ControlClient
                if let client { connection = client } else { connection = try connect() }
                client = connection
                for (index, action) in actions.enumerated() {
                    do throws(ClientError) {
                        // A change of one task has no time-out of its own.
                        connection.deadline = .after(seconds: Timing.answerTimeout)
                        post(.result(try action.perform(connection), to: action))
                    } catch {
                        // Whether a change was carried out is unknown once its connection is lost.
                        post(.away(since: Clock.now(), Self.reason(error)))
                        let dropped = actions.count - index - 1
                        let rest = dropped > 0 ? "; \(Describe.count(dropped, "other command")) not sent" : ""
                        post(.result(TopMessage("no answer to the last command" + rest, isRefusal: true)))
                        throw error
                    }
                }
                post(.round(try round(query, connection)))
                let taken = Clock.now().subtractingClamped(start)
                delay = max(delay, Int32(min(Int64(Timing.maximumInterval), max(0, taken) * Int64(Timing.share))))
            } catch {
                if client == nil, !actions.isEmpty {
                    post(.result(TopMessage("the command was not sent", isRefusal: true)))
                }
                client = nil
                post(.away(since: Clock.now(), Self.reason(error)))
                delay = Timing.untilNextAttempt
            }
            wait(delay)
        }
    }

    private func next() -> (TopQuery, [TopAction])? {
        state.withLock { state in
            guard !state.isStopped else { return nil }
            defer { state.actions = [] }
            return (state.query, state.actions)
        }
    }

    private func wait(_ milliseconds: Int32) {
        let mustGoOn = state.withLock { $0.isStopped || !$0.actions.isEmpty }
        if !mustGoOn { wake.wait(milliseconds: milliseconds) }
    }

    private func connect() throws(ClientError) -> ControlClient {
        let client = try connector.connect()
        client.answerTimeout = Timing.answerTimeout
        return client
    }

    private func round(_ query: TopQuery, _ client: ControlClient) throws(ClientError) -> Round {
        client.deadline = .after(seconds: Timing.answerTimeout)
        let status = try client.status()
        var detail: TaskDetail?
        if let id = query.detail { detail = try client.detailIfKnown(id) }
        var tasks: [TaskStatus] = []
        var seen: Set<TaskID> = []
        var hasMore = false
        for part in TopQuery.Part.allCases {
            guard let call = query.call(for: part, found: tasks.count) else {
                hasMore = hasMore || part.isIncluded(in: query) && part.count(in: status) > 0
                continue
            }
            let (found, isCut) = try pages(call, client)
            // A task may change its state between two calls.
            let new = found.filter { seen.insert($0.id).inserted }
            tasks += part == .ended ? new.reversed() : new
            hasMore = hasMore || isCut
        }
        return Round(
            query: query, status: status, tasks: tasks, hasMore: hasMore, detail: detail, moment: Clock.now())
    }

    /// Returns the tasks of a call up to its limit, and whether there are others.
    private func pages(
        _ call: TaskListParameters, _ client: ControlClient
    ) throws(ClientError) -> (tasks: [TaskStatus], isCut: Bool) {
        var call = call
        var tasks: [TaskStatus] = []
        let limit = call.limit ?? TopQuery.maximumRows
        // The daemon may send fewer tasks than the limit in a page.
        let isNewest = call.newest != nil
        for _ in 0..<Timing.pages {
            let page = try client.page(call)
            tasks += page.tasks.prefix(limit - tasks.count)
            guard let next = page.next, next != call.after, tasks.count < limit else {
                // The newest tasks end with the last one; whether there are older ones is likely if all were found.
                return (tasks, isNewest ? tasks.count == limit : page.next != nil)
            }
            call.after = next
            call.limit = limit - tasks.count
            call.newest = nil
        }
        return (tasks, true)
    }

    private static func reason(_ error: ClientError) -> String {
        switch error {
        case .noDaemon, .connectionLost: "waiting for it to start again"
        case .timedOut: "it does not answer"
        default: "\(error)"
        }
    }

    private func post(_ message: Message) {
        state.withLock { state in
            // A screen that is stopped reads nothing: only the last messages are kept.
            if state.messages.count >= 2 * Timing.actions { state.messages.removeFirst(Timing.actions) }
            state.messages.append(message)
        }
        screen.send()
    }
}
