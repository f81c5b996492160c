import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc
import TaskModel

struct Show: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows all details of tasks.",
        usage: "dlctl show [<options>] <id> ...",
        discussion: """
            Below the details stand the connections of a running task, and the last
            attempts with the times of their steps. With --json, the output is an object for one id and an array for several.

            EXAMPLES:
              dlctl show 7
              dlctl show 7 --json | jq .bytesDone
            """)

    @Argument(help: ArgumentHelp("The ids of the tasks, or ranges such as 3-5.", valueName: "id"), completion: .taskIDs)
    var arguments: [TaskIDs]

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws { try arguments.validate() }

    func perform(_ context: Context) throws {
        let client = try context.connect()
        let ids = try arguments.known { client }
        var tasks: [TaskDetail] = []
        var unknown: [TaskID] = []
        for id in ids {
            if let task = try client.detailIfKnown(id) { tasks.append(task) } else { unknown.append(id) }
        }
        if context.json {
            if arguments.single == nil {
                context.output.json(tasks)
            } else if let task = tasks.first {
                context.output.json(task)
            }
        } else {
            let width = Terminal.isTerminal(STDOUT_FILENO) ? Terminal.size(STDOUT_FILENO).columns : nil
            let style = Terminal.style(Environment.variables)
            for (index, task) in tasks.enumerated() {
                if index > 0 { context.output.line("") }
                for line in Self.lines(task, now: Clock.now(), width: width, style: style) { context.output.line(line) }
            }
        }
        for id in unknown { context.report(.unknown(id)) }
        context.output.flush()
        if !unknown.isEmpty { throw ExitStatus.failed }
    }

    /// Returns the facts of the task, its connections and its attempts.
    ///
    /// - Parameter width: the width of the terminal; `nil` to cut nothing off.
    static func lines(
        _ detail: TaskDetail, now: Milliseconds, width: Int?, style: Terminal.Style
    ) -> [String] {
        let task = detail.status
        let map = SegmentMap(width: min(Self.mapWidth, max(16, (width ?? 80) - 20)), style: style)
        var lines = lines(
            task, now: now, history: detail.history, why: detail.waitingFor, warning: detail.history.last?.warning,
            isInsecure: detail.insecure, isResumable: detail.resumable,
            limits: detail.live.flatMap { limits($0.rateLimits) },
            map: detail.transferredSegments.flatMap { segments in
                task.bytesTotal.flatMap { map.line(segments, total: $0) }
            })
        let inner = width.map { max(1, $0 - 2) }
        let connections = detail.live?.connections ?? []
        if !connections.isEmpty {
            lines += [""] + AttemptTable.lines(connections, of: task.kind, width: inner).map { "  " + $0 }
        }
        if !detail.history.isEmpty {
            lines += [""]
            lines += AttemptTable.lines(detail.history, of: task.state, now: now, width: inner).map { "  " + $0 }
        }
        return lines
    }

    private static let mapWidth = 60

    /// Returns the rate limits, such as `500 KiB/s (task), 2.0 MiB/s (daemon)`; `nil` if there are none.
    private static func limits(_ limits: [LiveRateLimit]) -> String? {
        if limits.isEmpty { return nil }
        return limits.map { "\(Describe.rate($0.rate)) (\($0.scope.rawValue))" }.joined(separator: ", ")
    }

    /// Returns a title, then one line for each fact. Unknown facts are omitted.
    static func lines(
        _ task: TaskStatus, now: Milliseconds, history: [TaskAttempt] = [], why: String? = nil,
        warning: String? = nil, isInsecure: Bool = false, isResumable: Bool? = nil, limits: String? = nil,
        map: String? = nil
    ) -> [String] {
        var facts: [(name: String, value: String?)] = [
            ("state", Describe.state(task, now: now, namesState: true)),
            ("why", why ?? Describe.outcome(task)),
            ("url", task.url),
            ("insecure", isInsecure ? "the certificates of servers are NOT verified" : nil),
            (task.kind == .upload ? "source" : "path", task.path.map { $0 + location(task) }),
            ("progress", progress(task, history)),
            (
                task.state == .failed || task.state == .cancelled ? "retry" : "resume",
                isResumable == false ? Describe.beginsAgain : nil
            ),
            ("map", map),
            ("rate", task.state == .active ? task.rate.map { Describe.rate($0) } : nil),
            ("rate limits", limits),
            (
                "time left",
                task.state == .active
                    ? task.eta.map { Describe.span(milliseconds: $0.multipliedClamped(by: 1000)) } : nil
            ),
            ("connections", task.connections > 0 ? "\(task.connections)" : nil),
            ("attempts", attempts(task, history)),
            ("not before", task.notBefore.map { Clock.local($0) }),
            ("error", task.error.map { "\($0.code): \($0.message)" }),
            ("warning", warning),
            ("to do", why == nil ? Describe.remedy(task) : nil),
            ("checksum", task.checksum.map { $0 + (task.verified ? " (verified)" : "") }),
            ("checksum list", task.checksumURL),
            ("after task", task.afterTask.map { "\($0)" }),
            ("priority", task.priority == .normal ? nil : task.priority.rawValue),
            ("batch", task.batch),
            ("key", task.key),
            ("owner", Accounts.shown(task.owner)),
            ("created", Clock.local(task.createdAt)),
            ("started", task.startedAt.map { Clock.local($0) }),
            ("finished", task.finishedAt.map { Clock.local($0) }),
        ]
        facts.removeAll { $0.value == nil }
        let width = facts.reduce(0) { max($0, $1.name.count) }
        return ["\(task.kind.rawValue) \(task.id)  \(Describe.name(task))"]
            + facts.map { "  " + DisplayWidth.pad($0.name, width) + "  " + Escape.visible($0.value ?? "") }
    }

    /// Returns a note on a finished file that was moved, removed, replaced or changed after the task completed.
    private static func location(_ task: TaskStatus) -> String {
        switch task.fileState {
        case .missing: " (missing: moved or removed since)"
        case .replaced: " (not the downloaded file: replaced or changed since)"
        case .present, nil: ""
        }
    }

    /// Returns the attempts that count, and beside them all those in the table if these are more.
    private static func attempts(_ task: TaskStatus, _ history: [TaskAttempt]) -> String {
        guard history.count > task.attempts else { return "\(task.attempts)" }
        let more = history.count < TaskAttempt.limit ? "" : " or more"
        return "\(task.attempts) counted, \(history.count)\(more) in all"
    }

    private static func progress(_ task: TaskStatus, _ history: [TaskAttempt]) -> String {
        var text = ByteSize.describe(task.bytesDone)
        if let total = task.bytesTotal {
            text += " of \(ByteSize.describe(total))"
            if let percent = Describe.percent(task.bytesDone, of: total) { text += ", \(percent)%" }
        }
        // Within one attempt the two differ by what several connections fetched twice and by what is not written yet.
        if task.bytesFetched > task.bytesDone, history.dropLast().contains(where: { $0.bytes > 0 }) {
            text += " (\(ByteSize.describe(task.bytesFetched)) over all attempts)"
        }
        return text
    }
}
