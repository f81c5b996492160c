import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc
import TaskModel

struct QueueList: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists batches and the progress of their tasks.",
        usage: "dlctl queue list [<options>]",
        discussion: """
            EXAMPLES:
              dlctl queue list
              dlctl queue list --json
            """)

    @OptionGroup var global: GlobalOptions
    @ParentCommand var queue: Queue
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global, queue.global] }

    func perform(_ context: Context) throws {
        let result = try context.connect().queues()
        if context.json {
            context.output.json(result)
            return
        }
        let width = Terminal.isTerminal(STDOUT_FILENO) ? Terminal.size(STDOUT_FILENO).columns : nil
        var table = Table(
            [
                Table.Column(title: "BATCH", minimum: 8), Table.Column(title: "OUTCOME", omission: 2),
                Table.Column(title: "DONE", alignsRight: true, omission: 1), Table.Column(title: "TASKS"),
            ], width: width)
        let rows = result.batches.map {
            [Escape.visible($0.batch), $0.outcome?.rawValue ?? "open", Self.done($0), Describe.counts($0.tasks)]
        }
        guard rows.isEmpty else { return table.page(rows).forEach(context.output.line) }
        context.note("no batches")
    }

    /// Returns the progress of a batch as `1.2 GiB of 4.0 GiB`, or without the total if it is unknown or reached.
    private static func done(_ batch: QueueListResult.Batch) -> String {
        let done = ByteSize.describe(batch.bytesDone)
        guard let total = batch.bytesTotal, total != batch.bytesDone else { return done }
        return "\(done) of \(ByteSize.describe(total))"
    }
}
