import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

struct Events: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Shows what happened to tasks.",
        discussion: """
            Shows the events in the daemon's journal, oldest first. With --follow it goes on with new ones until \
            Ctrl-C, across restarts of the daemon.

            EXAMPLES:
              dlctl events --since 2h                      the last two hours
              dlctl events --follow --on completed,failed  each end, as it happens
              dlctl events --batch nightly --json | jq -r 'select(.type == "failed").url'
              dlctl events --on completed --exec 'unzip -q "$DLD_PATH"' --cursor unzip
              dlctl events --exec ./hook --cursor c --exec-timeout 10m

            With --exec a command runs for each event, by /bin/sh as you, with the task as JSON on standard input and its \
            facts in DLD_ID, DLD_PATH, DLD_URL, DLD_STATE, DLD_EVENT, DLD_SEQUENCE and more. With --cursor it goes on \
            where it stopped: an event counts as done once its command has ended with 0. The commands of one task run one \
            after the other, in order.
            """)

    @Argument(help: ArgumentHelp("Show the events of these tasks.", valueName: "id"), completion: .taskIDs)
    var arguments: [TaskIDs] = []

    @Option(help: ArgumentHelp("Show the events after this sequence number.", valueName: "n"))
    var after: Int64?

    @Option(
        help: ArgumentHelp(
            "Show the events from this time on: 2026-01-31, 22:00, or 2h for two hours ago.", valueName: "time"))
    var since: String?

    @Flag(name: .shortAndLong, help: "Go on with new events. Without --after and --since, show only new ones.")
    var follow = false

    @OptionGroup var selection: EventOptions
    @OptionGroup var hook: HookOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        try arguments.validate()
        if after != nil, since != nil { throw ValidationError("--after and --since cannot be used together.") }
        if let after, after < 0 { throw ValidationError("--after: \"\(after)\" is not a sequence number.") }
        if selection.wantsProgress, !follow || hook.command != nil {
            throw ValidationError(
                "--on progress: needs --follow, without --exec, since the journal has no events of progress.")
        }
    }

    func perform(_ context: Context) throws {
        let since = try since.map { text throws(Failure) in try Clock.past(text, option: "--since") }
        let filter = try selection.filter(ids: arguments.ids)
        if let command = hook.command { return try run(command, context, since, filter) }
        guard follow else { return try list(context, since, filter) }
        let follower = context.follower(after: after, since: since, filter: filter)
        while true {
            // What has arrived is written together.
            guard let event = try follower.next(until: .after(seconds: 0)) else {
                context.output.flush()
                if let event = try follower.next(until: context.deadline) {
                    show(event, context)
                } else if context.deadline.isOver {
                    throw Failure.timeIsOver
                }
                continue
            }
            show(event, context)
        }
    }

    private func run(_ command: String, _ context: Context, _ since: Milliseconds?, _ filter: EventFilter) throws {
        let isQuiet = context.isQuiet
        let cursor = try hook.cursor.map { name throws(Failure) in
            try HookCursor(name: name, directory: HookCursor.directory(Environment.variables)) {
                if !isQuiet { Output.note("dlctl: waiting for the commands of an earlier run to end") }
                for run in $0 { run.announce(endingAfter: hook.timeout?.milliseconds) }
            }
        }
        var (start, journal) = (after, String?.none)
        var common: Int64?
        if let cursor, let position = cursor.position {
            (start, journal, common) = try Self.resume(
                at: position, last: max(position, cursor.done.max() ?? position), journal: cursor.journal, context)
        } else {
            let last = try context.connect().lastEvent(before: since)
            start = after ?? last.sequence
            journal = last.journal
        }
        let position = start ?? 0
        try cursor?.set(position: position, journal: journal, common: common)
        let runner = HookRunner(
            command, jobs: hook.jobs ?? 1, retries: hook.retries ?? 3, limit: hook.timeout?.milliseconds,
            until: context.deadline, after: position, cursor: cursor, connector: context.connector)
        try runner.run(context.follower(after: position, journal: journal, since: nil, filter: filter))
    }

    /// Returns the place at which a hook goes on: its own, unless the database was replaced meanwhile, by a backup for
    /// example.
    ///
    /// - Parameters:
    ///   - position: the stored position.
    ///   - last: the last event that is done.
    ///   - journal: the name of the journal in which they are.
    private static func resume(
        at position: Int64, last: Int64, journal: String?, _ context: Context
    ) throws -> (start: Int64, journal: String?, common: Int64?) {
        let page = try context.connect().eventPage(after: last, journal: journal, limit: 1)
        // A gap before the last event says where the journals differ. Another gap is reported when it is read.
        let gap = page.events.first.flatMap { $0.type == .gap && $0.sequence < last ? $0.sequence : nil }
        return (min(position, gap ?? position), page.journal, gap ?? last)
    }

    private func list(_ context: Context, _ since: Milliseconds?, _ filter: EventFilter) throws {
        var isEmpty = true
        let client = try context.connect()
        try client.forEachPageOfEvents(after: after, since: since, filter: filter) { events in
            for event in events { show(event, context) }
            context.output.flush()
            isEmpty = false
            return true
        }
        // The journal has the events of removed tasks too.
        var unknown: [TaskID] = []
        if isEmpty {
            for id in arguments.ids.prefix(100) where try client.taskIfKnown(id) == nil { unknown.append(id) }
        }
        for id in unknown { context.report(.unknown(id)) }
        if !unknown.isEmpty { throw ExitStatus.failed }
        if isEmpty, !context.json { context.note(filter == EventFilter() ? "no events" : "no matching events") }
    }

    private func show(_ event: TaskEvent, _ context: Context) {
        if context.json { context.output.json(event) } else { context.output.line(EventLine.text(event)) }
    }
}

extension Context {
    func follower(
        after: Int64?, journal: String? = nil, since: Milliseconds?, filter: EventFilter
    ) -> EventFollower {
        EventFollower(
            after: after, journal: journal, since: since, filter: filter,
            connect: { () throws(ClientError) in try self.connect() },
            report: { self.report(.daemonAway) })
    }
}
