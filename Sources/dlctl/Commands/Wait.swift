import ArgumentParser
import ControlClient
import TaskModel

struct Wait: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Waits until tasks have ended.",
        discussion: """
            A task has ended when it is completed, failed, cancelled or removed, or when the daemon has paused it \
            because it needs the user. Waiting continues across a restart of the daemon.

            EXAMPLES:
              dlctl wait 7 8 && echo completed
              dlctl wait 7 --timeout 60; [ $? -eq 75 ] && echo not yet
            """)

    @Argument(help: ArgumentHelp("The ids of the tasks.", valueName: "id"))
    var arguments: [TaskIDs]

    @Option(help: ArgumentHelp("Give up after this many seconds; fractions are allowed.", valueName: "seconds"))
    var timeout: SecondsArgument?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws { try arguments.validate() }

    func perform(_ context: Context) throws {
        let ids = arguments.ids
        let deadline = timeout.map { Deadline.after(seconds: $0.seconds) } ?? .never
        let waiter = context.waiter(ids, client: try context.connect(), deadline: deadline)
        try waiter.run()
        if context.json {
            if ids.count > 1 {
                context.output.json(waiter.settled)
            } else if let task = waiter.settled.first {
                context.output.json(task)
            }
        }
        guard waiter.conclude() else { throw ExitStatus.failed }
    }
}
