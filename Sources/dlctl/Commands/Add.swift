import ArgumentParser
import ControlClient
import Glibc
import TaskFiles
import TaskModel

struct Add: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Queues downloads and prints their ids, one per line.",
        discussion: """
            A task whose id was printed survives a power failure. Either all URLs of a command are queued or none.

            EXAMPLES:
              dlctl add https://example.org/a.iso
              dlctl add -o latest.iso -d . https://example.org/a.iso
              dlctl add --wait https://example.org/a.iso https://example.org/b.iso
              dlctl add --glob 'https://example.org/disk[1-9].{iso,sig}'
              dlctl add --wait --exec 'tar -xf "$DLD_PATH"' https://example.org/a.tar
              dlctl add --input urls.txt --batch nightly      running it again adds nothing
              dlctl add --mirror https://example.net/a.iso https://example.org/a.iso
              dlctl add --checksum-url https://example.org/SUMS https://example.org/a.iso
              dlctl add --input a.iso.meta4
              dlctl add --input aria2.session
              dlctl add --metalink https://example.org/a.iso.meta4
              dlctl add --user me --password-file ~/.secret https://example.org/private
            """)

    @Argument(help: ArgumentHelp("The URLs to download.", valueName: "url"), completion: .hosts)
    var arguments: [String] = []
    var urls: [String] { arguments.flatMap { ArgumentRuns.split($0) } }

    @Option(
        name: .customLong("input"),
        help: ArgumentHelp(
            """
            Read tasks from a URL list, queue file, Metalink file or aria2 input file; - is standard input. The whole \
            file is checked before any task is queued.
            """,
            valueName: "file"), completion: .file())
    var inputFiles: [String] = []
    private var inputFile: String? { inputFiles.first }

    @Flag(help: "Accept an --input without a task.")
    var allowEmpty = false

    @Flag(
        help: """
            Take {a,b}, [1-9], [001-100:2] and [a-z] in URLs for several URLs, as curl does. #1 in --output stands for \
            the value of the first of them.
            """)
    var glob = false

    @OptionGroup var fields: FieldOptions<DownloadFields>
    @OptionGroup var transfer: TransferOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    private var mirrors: [String] { fields.texts("mirrors") }

    func validate() throws {
        let urls = urls
        guard inputFiles.count < 2 else { throw ValidationError("--input: can be given once only; join the files.") }
        guard inputFile != nil || !urls.isEmpty else {
            throw ValidationError("Give a URL, or --input FILE.")
        }
        guard inputFile == nil || urls.isEmpty else {
            throw ValidationError("Give URLs or --input FILE, not both.")
        }
        guard inputFile == nil || !fields.isGiven("metalink") else {
            throw ValidationError("--metalink applies to URLs only; for a local Metalink file use --input FILE.")
        }
        guard inputFile == nil || !glob else { throw ValidationError("--glob applies to URLs only.") }
        guard !fields.isGiven("checksum") || !fields.isGiven("checksumURL") else {
            throw ValidationError("Give --checksum or --checksum-url, not both.")
        }
        // A key names one task for good, so that a repeated command adds nothing.
        guard transfer.key == nil || transfer.fields.isGiven("batch") || !fields.isGiven("update") else {
            throw ValidationError(
                "--update: a task that --key names is not checked again; give --batch instead of --key.")
        }
        let ofOne = [
            ("--output", fields.isGiven("output") && !glob), ("--mirror", !mirrors.isEmpty),
            ("--key", transfer.key != nil), ("--checksum", fields.isGiven("checksum")),
        ]
        guard urls.count != 1, let option = ofOne.first(where: { $0.1 })?.0 else { return }
        throw ValidationError("\(option) can be used with one URL only.")
    }

    func perform(_ context: Context) throws {
        var input = InputText()
        let options = try resolve(&input)
        let client: ControlClient
        let added: AddedTasks
        var batch: String?
        var waitedFor: [TaskID]
        // Without a key or a batch all tasks are new, so events from the subscription suffice unless one is paused.
        var isFollowing = false
        if let inputFile {
            let submission = try read(inputFile, options, &input, context)
            client = submission.queue.client
            batch = submission.batch
            if let batch {
                var applied = AddedTasks(try submission.queue.apply(batch: batch, prune: false, dryRun: false))
                if applied.countOfFound > 0 {
                    let repeated = submission.queue.feed.repeated(in: TaskFileReader.shown(inputFile))
                    context.report(repeated.notes)
                    // A repeated entry with other options counts as updated.
                    let unchanged = applied.applied?.unchanged ?? 0
                    applied.applied?.unchanged = max(0, unchanged - repeated.count)
                }
                added = applied
                waitedFor = transfer.wait ? try uncompleted(of: batch, submission.queue.feed.entries, client) : []
                waitedFor += added.ids
            } else {
                isFollowing = transfer.wait && !submission.needsStates
                if isFollowing { try context.follow(client) }
                added = try submission.queue.add()
                waitedFor = added.ids
            }
        } else {
            let tasks = try tasks(options)
            let urls = tasks.map(\.url)
            if !glob { remarkGlobs(context) }
            client = try context.connect()
            isFollowing = transfer.wait && !transfer.needsStates
            if isFollowing { try context.follow(client) }
            added = try context.add(tasks, names: FieldNames(urls: urls, mirrors: mirrors), client: client)
            waitedFor = added.ids
        }
        try context.conclude(
            added, batch: batch, cookies: transfer.cookies, rule: options.onConflict,
            isUpdate: options.update, wait: transfer.wait ? waitedFor : nil, command: transfer.command,
            client: client, isFollowing: isFollowing)
    }

    /// Returns a task without a URL that contains the values of the options.
    func resolve(_ input: inout InputText) throws(Failure) -> TaskSpecification {
        var values = UnpackedTask(TaskSpecification(url: ""))
        try transfer.resolve(&input, into: &values)
        try fields.resolve(&input, into: &values)
        return values.packed
    }

    func tasks(_ options: TaskSpecification) throws(Failure) -> [TaskSpecification] {
        var expanded = urls.map { (url: $0, values: [String]()) }
        if glob {
            expanded = []
            for url in urls { expanded += try URLGlob(parsing: url).expanded }
            try checkCount(expanded.count)
        }
        let names = FieldNames(urls: expanded.map(\.url), mirrors: mirrors)
        var tasks: [TaskSpecification] = []
        var outputs: Set<String> = []
        for (index, (url, values)) in expanded.enumerated() {
            var task = options
            task.url = url
            if glob, let output = options.output {
                let name = try URLGlob.name(output, values)
                guard outputs.insert(name).inserted else {
                    throw .usage(
                        "--output: several URLs would have the name \"\(name)\"; use #1 for the value of the first set or "
                            + "range, #2 for that of the second", field: "--output")
                }
                task.output = name
            }
            do throws(FieldError) {
                try task.check()
            } catch {
                var placed = error
                placed.field = "tasks[\(index)].\(error.field)"
                throw Failure(placed, names: names)
            }
            tasks.append(task)
        }
        return tasks
    }

    /// Says which URLs would be several with `--glob`.
    private func remarkGlobs(_ context: Context) {
        for url in urls {
            guard let count = try? URLGlob(parsing: url).expanded.count, count > 1,
                let shown = try? TaskAddress(parsing: url).redacted
            else { continue }
            context.report(
                warnings: ["\(shown) is taken as one URL; with --glob it stands for \(count)"], cookies: nil)
        }
    }

    /// Checks the number of URLs that `--glob` leads to.
    private func checkCount(_ count: Int) throws(Failure) {
        guard count <= URLGlob.limit else {
            throw .usage("--glob: \(count) URLs are more than \(URLGlob.limit); split them", field: "--glob")
        }
        let ofOne = [("--key", transfer.key != nil), ("--checksum", fields.isGiven("checksum"))]
        if count > 1, let option = ofOne.first(where: { $0.1 })?.0 {
            throw .usage("\(option) can be used with one URL only", field: option)
        }
    }

    // MARK: - A file of tasks

    private struct Submission {
        var queue: QueueSubmission
        /// The batch to which the entries are applied; `nil` for no batch.
        var batch: String?
        /// Whether an entry may match an existing task by its key, or starts paused.
        var needsStates: Bool
    }

    private func read(
        _ file: String, _ options: TaskSpecification, _ input: inout InputText, _ context: Context
    ) throws -> Submission {
        let content = try TaskFileReader.open(file, for: "--input", &input)
        var batch = options.batch
        var nests = false
        var needsStates = transfer.needsStates
        if case .file(let whole) = content {
            context.report(whole.notes)
            batch = batch ?? whole.batch
            nests = whole.nestsDirectories
            needsStates =
                needsStates || whole.entries.contains { $0.specification.key != nil || $0.specification.paused }
        }
        let isAsItIs = options.isURLAlone && batch == nil
        let feed = try EntryFeed(content) { entry throws(FileError) in
            // The entry was validated when it was read.
            if isAsItIs { return }
            var task = entry.specification.filled(from: options, nestsDirectory: nests)
            if let batch { task.batch = batch }
            do throws(FieldError) {
                try task.check()
            } catch {
                let message = "\"\(QueueFile.key(ofField: error.field))\": \(error.message)"
                throw TaskFileReader.error(message, file: file, entry: entry, code: error.code)
            }
            entry.specification = task
        }
        // Report an error at the start of a list before connecting to a daemon.
        if try !feed.hasMore(), !allowEmpty { throw TaskFileReader.empty(file) }
        return Submission(
            queue: QueueSubmission(client: try context.connect(), file: file, feed: feed), batch: batch,
            needsStates: needsStates)
    }

    /// Returns the tasks of a batch to wait for. With `--wait` these include tasks that an earlier call queued. Tasks
    /// that ended without success are included only if the file still names them.
    private func uncompleted(of batch: String, _ entries: [QueueEntry], _ client: ControlClient) throws -> [TaskID] {
        let identities = Set(entries.compactMap { EntryIdentity($0.specification) })
        var ids: [TaskID] = []
        let states = TaskState.allCases.filter { $0 != .completed }
        try client.forEachPage(filter: TaskFilter(states: states, batch: batch)) { page in
            ids += page.filter { !$0.state.isEnded || identities.contains(EntryIdentity($0)) }.map(\.id)
            return true
        }
        return ids
    }
}
