import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// The output of `dlctl` without a subcommand: the state of the daemon and the tasks that run.
extension RootCommand: DaemonCommand {
    var outer: [GlobalOptions] { [] }

    /// The maximum number of running tasks shown.
    private static let shown = 10

    private struct Shown: Encodable {
        var status: DaemonStatus
        var tasks: [TaskStatus]
    }

    func perform(_ context: Context) throws {
        let client: ControlClient
        do {
            client = try context.connect()
        } catch {
            guard case .noDaemon = error else { throw error }
            var failure = Failure(error)
            failure.message += "; \"dlctl --help\" lists the commands"
            throw failure
        }
        let status = try client.status()
        // One more tells whether there are others.
        let page = try client.page(
            TaskListParameters(filter: TaskFilter(states: [.active]), limit: context.json ? nil : Self.shown + 1))
        if context.json { return context.output.json(Shown(status: status, tasks: page.tasks)) }
        Status.lines(status, now: Clock.now()).forEach(context.output.line)
        context.output.line("")
        guard !page.tasks.isEmpty else {
            context.output.line("no task runs; \"dlctl list\" lists all tasks, \"dlctl --help\" the commands")
            return
        }
        var table = ListTable(context.output, fields: nil, isQueue: false)
        table.add(Array(page.tasks.prefix(Self.shown)), hasSeveralOwners: page.severalOwners == true)
        let others = (status.tasks[TaskState.active.rawValue] ?? 0) - Self.shown
        if page.tasks.count > Self.shown {
            context.output.line("… and \(max(1, others)) more; see \"dlctl list active\"")
        }
    }
}
