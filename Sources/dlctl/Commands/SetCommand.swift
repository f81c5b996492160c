import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

/// The `set` command. It is not called `Set` because that would hide Swift's own `Set`.
struct SetCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Changes the options of tasks and keeps their progress.",
        discussion: """
            A running task continues at once with the new options. With a new URL, downloaded bytes are kept if the \
            server confirms that the file is the same. A task that has failed, or that waits for its server or for a \
            new URL, then starts by itself. A completed task cannot be changed, and a cancelled task only after dlctl \
            retry. --url, --output, --checksum and --mirror can be used with one task only.

            The value none removes an option. --output '' removes the output name, because none could be a file name. \
            For a directory with the name none, write ./none.

            EXAMPLES:
              dlctl set 7 --url 'https://example.org/a.iso?signature=fresh'
              dlctl set 7 8 9 --limit 500K --priority low
              dlctl set --batch nightly --directory isos
              dlctl set 7 --limit none --connections none
              dlctl set 7 --output other.iso
              dlctl set 7 --start-at 22:00
              dlctl set 7 8 --batch nightly            moves the tasks to this batch
              dlctl set 7 --header @headers.txt        replaces all earlier header lines
              dlctl set 7 --mirror https://example.net/a.iso --checksum sha256:...
              dlctl set 7 --user me --password-file ~/.secret
            """)

    @OptionGroup var selection: SelectionOptions

    @OptionGroup var fields: FieldOptions<ChangeFields>
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        guard !fields.given.isEmpty || newBatch != nil else {
            let options = ChangeFields.fields.map { "--" + $0.word }
            throw ValidationError(
                "Give at least one change: \(options.dropLast().joined(separator: ", ")) or \(options.last ?? "").")
        }
        for field in fields.given {
            let texts = fields.texts(field.name)
            guard texts.count > 1, texts.contains("none") else { continue }
            throw ValidationError(
                "--\(field.word) none removes all \(field.name) and cannot be combined with other values.")
        }
        if let option = optionOfOneTask, selection.arguments.single == nil {
            throw ValidationError("\(option) can be used with one task only; give its id.")
        }
    }

    /// The first option whose value only one task can have.
    private var optionOfOneTask: String? {
        let names = Set(fields.assigned.map(\.name))
        return TaskField.changeable.first { $0.key?.isOfOneEntry == true && names.contains($0.name) }
            .map { "--" + $0.word }
    }

    func perform(_ context: Context) throws {
        var input = InputText()
        let changes = try changes(&input)
        if let id = selection.arguments.single, !selection.dryRun {
            try change(id, changes, context)
        } else {
            try changeSeveral(changes, context)
        }
    }

    private func change(_ id: TaskID, _ changes: TaskChanges, _ context: Context) throws {
        let client = try context.connect()
        let task: TaskStatus
        do throws(ClientError) {
            task = try client.update(id, changes)
        } catch .rpc(let answer) where answer.code == RPCError.Number.unknownTask {
            throw Failure.unknown(id)
        } catch {
            throw Failure(error, names: names)
        }
        if context.json {
            // What `show` prints.
            context.output.json((try? client.detailIfKnown(id)) ?? TaskDetail(task))
        } else {
            let next = task.state == .failed ? "; to start it: dlctl retry \(task.id)" : ""
            context.remark("task \(task.id) changed (\(Describe.state(task, now: Clock.now())))" + next)
        }
    }

    private func changeSeveral(_ changes: TaskChanges, _ context: Context) throws {
        try context.carryOut(.set, selection) { client, call throws(Failure) in
            let selection: TaskUpdateParameters.Selection =
                if let ids = call.ids { .tasks(ids) } else { .matching(call.filter ?? TaskFilter()) }
            do throws(ClientError) {
                return try client.update(selection, changes)
            } catch {
                throw Failure(error, names: names)
            }
        }
    }

    private var names: FieldNames {
        FieldNames(urls: fields.text("url").map { [$0] } ?? [], mirrors: fields.texts("mirrors"))
    }

    /// The batch to which the tasks move: beside ids, `--batch` selects nothing.
    private var newBatch: String? { selection.arguments.haveIDs ? selection.filter.batch : nil }

    func changes(_ input: inout InputText) throws(Failure) -> TaskChanges {
        var changes = try fields.changes(&input)
        if let newBatch { changes.batch = newBatch == "none" ? .takeBack : .set(newBatch) }
        return changes
    }
}
