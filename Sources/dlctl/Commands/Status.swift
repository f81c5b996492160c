import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

struct Status: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows the state of the daemon.",
        usage: "dlctl status [<options>]",
        discussion: """
            EXAMPLES:
              dlctl status
              dlctl status --json | jq .tasks.active
              dlctl status --json | jq .metrics.values.dld_downloaded_bytes_total
            """)

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        let status = try context.connect().status(metrics: context.json)
        let now = Clock.now()
        let directory = try? HookCursor.directory(Environment.variables)
        let hooks = directory.map { HookRun.long(in: $0, now: now) } ?? []
        if context.json {
            context.output.json(Shown(status: status, hooks: hooks.map { Hook(cursor: $0.cursor, run: $0.run) }))
        } else {
            Self.lines(status, hooks: hooks.map { "\($0.cursor): \($0.run.words(now: now))" }, now: now)
                .forEach(context.output.line)
        }
    }

    /// The status with the commands of the user's hooks, of which the daemon does not know.
    struct Shown: Encodable {
        var status: DaemonStatus
        var hooks: [Hook]

        private enum CodingKeys: String, CodingKey { case hooks }

        func encode(to encoder: any Encoder) throws {
            try status.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(hooks, forKey: .hooks)
        }
    }

    /// A command of a hook that has run for long.
    struct Hook: Encodable {
        var cursor: String
        var run: HookRun

        private enum CodingKeys: String, CodingKey { case cursor, process, since, event, task, command }

        func encode(to encoder: any Encoder) throws {
            // `encode` instead of `encodeIfPresent`, so that no field is ever missing.
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(cursor, forKey: .cursor)
            try container.encode(run.process, forKey: .process)
            try container.encode(run.since, forKey: .since)
            try container.encode(run.event, forKey: .event)
            try container.encode(run.task, forKey: .task)
            try container.encode(run.command, forKey: .command)
        }
    }

    /// - Parameter hooks: a line for each command of the user's hooks that has run for long.
    static func lines(
        _ status: DaemonStatus, hooks: [String] = [], now: Milliseconds, clock: ((Milliseconds) -> String)? = nil
    ) -> [String] {
        let clock = clock ?? { Clock.brief($0, now: now) }
        var facts = [
            ("uptime", Describe.span(milliseconds: status.uptime)),
            ("tasks", Describe.counts(status.tasks)),
        ]
        if let pause = status.schedulePause {
            let end = pause.until.map { "until \(clock($0))" } ?? "until the configuration changes"
            facts.append(("paused", "by the schedule, \(end)"))
        }
        facts += waiting(status, now: now, clock: clock).enumerated().map { ($0 == 0 ? "waiting" : "", $1) }
        facts += storage(status).enumerated().map { ($0 == 0 ? "on disk" : "", $1) }
        facts += [
            ("rate", "\(Describe.rate(status.downloadRate)) down, \(Describe.rate(status.uploadRate)) up")
        ]
        facts += Resources.limits(status.limits, clock: clock).enumerated().map { ($0 == 0 ? "limits" : "", $1) }
        facts += Resources.disks(status.disks).enumerated().map { ($0 == 0 ? "disks" : "", $1) }
        facts += Resources.hosts(status.hosts, now: now, clock: clock).enumerated().map {
            ($0 == 0 ? "on hold" : "", $1)
        }
        facts += [
            ("config", status.configurationFile ?? "none; the defaults apply"),
            ("downloads", status.downloadDirectory),
            ("state", status.stateDirectory),
            ("socket", status.socket),
            ("libcurl", status.libcurl),
        ]
        facts += WebhookLines.lines(status.webhooks ?? [], now: now, clock: clock).enumerated()
            .map { ($0 == 0 ? "webhooks" : "", $1) }
        facts += hooks.enumerated().map { ($0 == 0 ? "hooks" : "", $1) }
        facts += (status.problems ?? []).enumerated().map { ($0 == 0 ? "problems" : "", $1) }
        if status.internalFaults > 0 {
            facts.append(
                (
                    "faults",
                    "\(status.internalFaults) transfers stalled because of an internal error; please report the log"
                ))
        }
        let width = facts.reduce(0) { max($0, $1.0.count) }
        return ["dld \(Escape.visible(status.version)), process \(status.pid)"]
            + facts.map { "  " + DisplayWidth.pad($0.0, width) + "  " + Escape.visible($0.1) }
    }

    /// Returns the storage use if it has a limit, such as `1.2 GiB of 10 GiB`, with the user if there are several
    /// owners.
    private static func storage(_ status: DaemonStatus) -> [String] {
        guard let storage = status.storage, let limit = storage.limit else { return [] }
        let shown = storage.owners.prefix(5)
        var lines = shown.map { owner in
            "\(ByteSize.describe(owner.bytes)) of \(ByteSize.describe(limit))"
                + (storage.owners.count > 1 ? " for user \(Accounts.name(owner.owner))" : "")
        }
        let others = storage.owners.count - shown.count
        if others == 1 { lines.append("1 other user uses less") }
        if others > 1 { lines.append("\(others) other users use less each") }
        return lines
    }

    /// Returns one line for each cause of waiting, such as `12: name does not resolve, next try in 15 s`.
    private static func waiting(
        _ status: DaemonStatus, now: Milliseconds, clock: (Milliseconds) -> String
    ) -> [String] {
        guard let waiting = status.waiting else { return [] }
        var lines = waiting.causes.map { "\($0.tasks): \(Waiting($0).words(now: now, clock: clock))" }
        let others = waiting.counted - waiting.causes.reduce(0) { $0 + $1.tasks }
        if others > 0 { lines.append("\(others): other causes") }
        let all = status.tasks[TaskState.waiting.rawValue] ?? 0
        if all > waiting.counted, waiting.counted > 0 {
            lines.append("(counted among \(waiting.counted) of \(all) waiting tasks)")
        }
        return lines
    }
}
