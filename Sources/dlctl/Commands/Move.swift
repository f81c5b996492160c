import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

struct Move: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Changes a task's position in the queue.",
        usage: "dlctl move <id> (--first | --last | --before <id>)",
        discussion: """
            The order applies among your tasks of the same priority. Tasks of different batches take turns. A running \
            task keeps running; its new position applies when it has to wait again.

            EXAMPLES:
              dlctl move 7 --first
              dlctl move 7 --last
              dlctl move 7 --before 3
              dlctl list --queue             the order that results
            """)

    @Argument(help: "The id of the task.", completion: .taskIDs)
    var id: TaskID

    @Flag(help: "Move the task to the front.")
    var first = false

    @Flag(help: "Move the task to the end.")
    var last = false

    @Option(help: ArgumentHelp("Move the task before this one.", valueName: "id"), completion: .taskIDs)
    var before: TaskID?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        guard [first, last, before != nil].count(where: { $0 }) == 1 else {
            throw ValidationError("Give the new position: --first, --last or --before ID.")
        }
    }

    private var placement: TaskPlacement {
        if let before { return .before(before) }
        return first ? .first : .last
    }

    func perform(_ context: Context) throws {
        let client = try context.connect()
        let task: TaskStatus
        do throws(ClientError) {
            task = try client.move(id, placement)
        } catch .rpc(let answer) where answer.code == RPCError.Number.unknownTask {
            throw Failure.unknown(answer.data?.field == "before" ? before ?? id : id)
        } catch {
            throw Failure(error)
        }
        if context.json {
            context.output.json(task)
        } else {
            context.remark("task \(task.id) moved (\(Describe.state(task, now: Clock.now())))")
        }
    }
}
