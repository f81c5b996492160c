import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

struct Wait: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits until tasks have ended.",
        usage: "dlctl wait [<options>] [<id|state> ...]",
        discussion: """
            A task has ended when it is completed, failed, cancelled or removed, or when the daemon has paused it \
            because it needs the user. Waiting continues across a restart of the daemon. Ctrl-C ends the waiting \
            alone; the tasks go on.

            --all and --batch wait for the tasks that have not ended at that moment, and a state for your tasks in \
            it; if there are none, dlctl says so and exits with 0.

            EXAMPLES:
              dlctl wait 7 8 && echo completed
              dlctl wait --all
              dlctl wait --batch nightly
              dlctl wait active
              dlctl wait 7 --timeout 60; [ $? -eq 75 ] && echo not yet
            """)

    @Argument(
        help: ArgumentHelp(
            "The ids of the tasks, ranges such as 3-5, or states such as active.", valueName: "id|state"),
        completion: .taskIDs)
    var arguments: [TaskIDs] = []

    @Flag(help: "Wait for all of your tasks that have not ended.")
    var all = false

    @Option(
        help: ArgumentHelp("Wait for the tasks of this batch that have not ended.", valueName: "name"),
        completion: .batches)
    var batch: String?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        try arguments.validate(acceptsStates: true)
        if batch?.isEmpty == true { throw ValidationError("--batch: is empty; give the name of a batch.") }
        let isFiltered = all || batch != nil
        if arguments.isEmpty && !isFiltered {
            throw ValidationError("Give ids, a state, --all or --batch NAME.")
        }
        guard arguments.haveIDs else { return }
        if isFiltered { throw ValidationError("Give ids, or --all or --batch, not both.") }
        if !arguments.states.isEmpty { throw ValidationError("Give ids or states, not both.") }
    }

    func perform(_ context: Context) throws {
        let client = try context.connect()
        let target = try WaitTarget(
            ids: try arguments.known { client }, states: arguments.states, batch: batch, isAll: all, client)
        if target.ids.isEmpty {
            if context.json { context.output.json([TaskStatus]()) }
            if !context.json { context.note(target.absence) }
            return
        }
        let waiter = context.waiter(target, client: client)
        try waiter.run()
        if context.json {
            if target.ids.count > 1 || arguments.single == nil {
                context.output.json(waiter.settled)
            } else if let task = waiter.settled.first {
                context.output.json(task)
            }
        }
        try context.conclude(waiter)
    }
}
