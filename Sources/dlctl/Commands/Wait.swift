import ArgumentParser
import ControlClient
import TaskModel

struct Wait: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Blocks until tasks have ended.",
        discussion: """
            A task has ended when it completed, failed or was cancelled or removed, or when it is paused and needs \
            a person who did not pause it. The waiting outlives a restart of the daemon.

            EXAMPLES:
              dlctl wait 7 8 && echo both are here
              dlctl wait 7 --timeout 60; [ $? -eq 75 ] && echo not yet
            """)

    @Argument(help: ArgumentHelp("The tasks' ids.", valueName: "id"))
    var arguments: [TaskIDs]

    @Option(help: ArgumentHelp("Give up after so many seconds; fractions are allowed.", valueName: "seconds"))
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
