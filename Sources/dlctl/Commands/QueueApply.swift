import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc
import TaskFiles
import TaskModel

struct QueueApply: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Makes a batch match a queue file.",
        usage: "dlctl queue apply [<options>] <file>",
        discussion: """
            The whole file is checked first. If it contains an error, dlctl prints its line and column, and nothing is \
            queued. Applying a file a second time adds nothing: an entry is identified by its key, otherwise by its \
            kind, URL and output. The name of the batch comes from --batch, otherwise from the file, otherwise from \
            the file name without its suffix.

            EXAMPLES:
              dlctl queue apply nightly.yaml
              dlctl queue apply nightly.yaml --prune --dry-run     show what would change
            """)

    @Argument(
        help: "A queue file, URL list, Metalink or aria2 input file; - is standard input.", completion: .file())
    var file: String

    @Flag(help: "Cancel the batch's tasks that the file no longer contains.")
    var prune = false

    @Flag(help: "Show what would change without changing it.")
    var dryRun = false

    @Flag(name: .shortAndLong, help: "Do not ask before --prune cancels more than half of the batch.")
    var yes = false

    @Flag(help: "Accept a file without a task.")
    var allowEmpty = false

    @Option(help: ArgumentHelp("The batch that the file describes.", valueName: "name"), completion: .batches)
    var batch: String?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var queue: Queue
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global, queue.global] }

    func perform(_ context: Context) throws {
        var input = InputText()
        var content = try TaskFileReader.read(file, for: "file", &input)
        context.report(content.notes)
        if content.entries.isEmpty, !allowEmpty { throw TaskFileReader.empty(file) }
        guard let batch = batch ?? content.batch ?? (file == "-" ? nil : QueueFile.batch(ofPath: file)) else {
            throw Failure.usage(
                "give --batch NAME: standard input has no file name from which to take the batch", field: "--batch")
        }
        for index in content.entries.indices { content.entries[index].specification.batch = batch }
        var sample = TaskSpecification(url: "http://localhost/")
        sample.batch = batch
        do throws(FieldError) {
            try sample.check()
        } catch {
            throw Failure(error, names: FieldNames())
        }
        let client = try context.connect()
        func apply(dryRun: Bool) throws(Failure) -> QueueCommitResult {
            let feed = try EntryFeed(.file(content)) { _ in }
            return try QueueSubmission(client: client, file: file, feed: feed)
                .apply(batch: batch, prune: prune, dryRun: dryRun)
        }
        if prune, !dryRun, !yes { try Confirmation.obtain(for: apply(dryRun: true), ofBatch: batch) }
        let result = try apply(dryRun: dryRun)
        if context.json {
            context.output.json(result)
        } else {
            PlannedChanges.lines(result).forEach(context.output.line)
            context.remark(
                "\(result.added) added, \(result.updated) updated, \(result.unchanged) unchanged, "
                    + (result.checked > 0 ? "\(result.checked) checked again, " : "")
                    + "\(result.pruned) pruned" + (dryRun ? " (nothing was changed)" : ""))
            if result.unchanged + result.updated > 0, !prune, !dryRun, Terminal.isTerminal(STDERR_FILENO) {
                try remarkCancelled(of: batch, context, client)
            }
        }
    }

    /// Tells of tasks that stay cancelled although the file may name them.
    private func remarkCancelled(of batch: String, _ context: Context, _ client: ControlClient) throws(ClientError) {
        let count = try context.ownTasks(in: .cancelled, TaskFilter(batch: batch), client)
        guard count > 0 else { return }
        context.note(
            "\(Describe.count(count, "task")) of the batch \(count == 1 ? "is" : "are") cancelled; the file does not start "
                + "such tasks: dlctl list cancelled --batch \(Shell.quoted(batch))")
    }
}
