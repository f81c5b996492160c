import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc
import TaskModel

struct Watch: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Shows tasks with live bars.",
        usage: "dlctl watch [<options>] [<id|state> ...]",
        discussion: """
            With ids, states or --batch, the bars stay until the tasks selected at that moment have ended, and the exit \
            status is that of dlctl wait. Without them, dlctl shows what runs and waits, whatever is added later included, until Ctrl-C. Ctrl-C ends \
            the watching alone; the tasks go on.

            Where standard error is not a terminal, dlctl prints a line for each change instead. --json prints the \
            events as dlctl events --json does, one object a line.

            EXAMPLES:
              dlctl watch
              dlctl watch 7 8
              dlctl watch active
              dlctl watch --batch nightly
              dlctl watch --json | jq .type
            """)

    @Argument(
        help: ArgumentHelp(
            "The ids of the tasks, ranges such as 3-5, or states such as active.", valueName: "id|state"),
        completion: .taskIDs)
    var arguments: [TaskIDs] = []

    @Option(
        help: ArgumentHelp("Show the tasks of this batch that have not ended.", valueName: "name"),
        completion: .batches)
    var batch: String?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        try arguments.validate(acceptsStates: true, all: "\"dlctl watch\"")
        if batch?.isEmpty == true { throw ValidationError("--batch: is empty; give the name of a batch.") }
        guard arguments.haveIDs else { return }
        if batch != nil { throw ValidationError("Give ids or --batch, not both.") }
        if !arguments.states.isEmpty { throw ValidationError("Give ids or states, not both.") }
    }

    func perform(_ context: Context) throws {
        if arguments.isEmpty, batch == nil {
            guard context.showsBars else { return try follow(context) }
            return try OpenWatch(context).run()
        }
        let client = try context.connect()
        var target = try WaitTarget(
            ids: try arguments.known { client }, states: arguments.states, batch: batch, client)
        target.verb = "watch"
        if target.ids.isEmpty {
            if !context.json { context.note(target.absence) }
            return
        }
        let shows = context.showsBars ? nil : { (event: TaskEvent) in Self.show(event, context) }
        let waiter = context.waiter(target, client: client, onEvent: shows)
        try waiter.run()
        try context.conclude(waiter)
    }

    /// Prints every event from now on.
    private func follow(_ context: Context) throws {
        context.tellOnInterrupt(.everything)
        let follower = context.follower(after: nil, since: nil, filter: EventFilter())
        while true {
            if let event = try follower.next(until: .never) { Self.show(event, context) }
        }
    }

    private static func show(_ event: TaskEvent, _ context: Context) {
        if context.json { context.output.json(event) } else { context.output.line(EventLine.text(event)) }
        context.output.flush()
    }
}
