import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

/// The `set` command. It is not called `Set` because that would hide Swift's own `Set`.
struct SetCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Changes what tasks ask for, and keeps their bytes.",
        discussion: """
            A task that runs goes on at once with what is asked now. With another URL, what was fetched counts on \
            where the server vouches that the file is the same; a task that failed, or that waits for its server or \
            for a fresh URL, goes on by itself. A completed task cannot be changed, and a cancelled one only after \
            dlctl retry. --url, --output, --checksum and --mirror say something of one task alone.

            The word none takes back what was asked for; with --output, where it could be a name, '' does. (A \
            directory of that name is ./none.)

            EXAMPLES:
              dlctl set 7 --url 'https://example.org/a.iso?signature=fresh'
              dlctl set 7 8 9 --limit 500K --priority low
              dlctl set --batch nightly --directory isos
              dlctl set 7 --limit none --connections none
              dlctl set 7 --output other.iso
              dlctl set 7 --start-at 22:00
              dlctl set 7 --header @headers.txt        in place of those that it had
              dlctl set 7 --mirror https://example.net/a.iso --checksum sha256:...
              dlctl set 7 --user me --password-file ~/.secret
            """)

    @OptionGroup var selection: SelectionOptions

    @Option(help: ArgumentHelp("Where the file is from now on.", valueName: "url"))
    var url: String?

    @Option(
        name: .customLong("mirror"), parsing: .singleValue,
        help: ArgumentHelp(
            """
            Another URL of the very same file, best first; may be repeated. These take the place of all that the task \
            had; none takes all back.
            """, valueName: "url"))
    var mirrors: [String] = []

    @Option(help: ArgumentHelp("The digest that the file must have; or none.", valueName: "algorithm:hex"))
    var checksum: String?

    @Option(help: "Which ready task goes first.")
    var priority: TaskPriority?

    @Option(help: ArgumentHelp("Bytes a second at most: 500K, 2M, 1.5G; or none.", valueName: "rate"))
    var limit: ChangeArgument<RateArgument>?

    @Option(
        help: ArgumentHelp(
            "Connections: 1 to 16, auto for as many as pay; or none for what the configuration says.",
            valueName: "n|auto"))
    var connections: ChangeArgument<ConnectionCount>?

    @Option(
        name: .customLong("header"), parsing: .singleValue,
        help: ArgumentHelp(
            """
            A header line, 'Name: value'; may be repeated. These take the place of all that the task had. @FILE or @- \
            reads lines from there; none takes all back.
            """, valueName: "line"))
    var headers: [String] = []

    @Option(
        help: ArgumentHelp("The user name for the server; none takes it and its password back.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "The password is the first line of this file; - is standard input, none takes it back.", valueName: "file"))
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "Wait until then: 2030-01-31T22:00, 22:00 in local time, +2h; or none.", valueName: "time"))
    var startAt: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file's name; an empty one takes it back ('').", valueName: "name"))
    var output: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            """
            The place, as of dlctl add; or none for the daemon's download directory. What was fetched goes along, on \
            the same file system alone.
            """, valueName: "dir"))
    var directory: String?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        let isNamed: [Bool] = [
            url != nil, !mirrors.isEmpty, checksum != nil, priority != nil, limit != nil, connections != nil,
            !headers.isEmpty, user != nil, passwordFile != nil, startAt != nil, output != nil, directory != nil,
        ]
        guard isNamed.contains(true) else {
            throw ValidationError(
                "Say what to change: --url, --mirror, --checksum, --priority, --limit, --connections, --header, "
                    + "--user, --password-file, --start-at, --output or --directory.")
        }
        if headers.count > 1, headers.contains("none") {
            throw ValidationError("--header none takes all headers back, and stands alone.")
        }
        if mirrors.count > 1, mirrors.contains("none") {
            throw ValidationError("--mirror none takes all mirrors back, and stands alone.")
        }
        if let option = optionOfOneTask, singleTask == nil {
            throw ValidationError("\(option) is for one task alone; name its id.")
        }
    }

    /// The first option whose value only one task can have.
    private var optionOfOneTask: String? {
        if url != nil { return "--url" }
        if output?.isEmpty == false { return "--output" }
        if let checksum, checksum != "none" { return "--checksum" }
        return mirrors.isEmpty || mirrors == ["none"] ? nil : "--mirror"
    }

    /// The task id, if the selection is a single id.
    private var singleTask: TaskID? {
        let ids = selection.arguments.ids
        return ids.count == 1 ? ids.first : nil
    }

    func perform(_ context: Context) throws {
        var input = InputText()
        let changes = try changes(&input)
        if let id = singleTask, !selection.dryRun {
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
            context.output.json(task)
        } else {
            context.output.line("task \(task.id) changed (\(Describe.state(task, now: Clock.now())))")
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

    private var names: FieldNames { FieldNames(urls: url.map { [$0] } ?? [], mirrors: mirrors) }

    func changes(_ input: inout InputText) throws(Failure) -> TaskChanges {
        var changes = TaskChanges()
        changes.url = url
        changes.priority = priority.map { .set($0) }
        switch limit?.change {
        case .set(let rate): changes.limit = rate.bytesPerSecond.map { .set($0) } ?? .takeBack
        case .takeBack: changes.limit = .takeBack
        case nil: break
        }
        changes.connections = connections?.change
        if headers == ["none"] {
            changes.headers = .takeBack
        } else if !headers.isEmpty {
            changes.headers = .set(try input.headers(headers))
        }
        if mirrors == ["none"] {
            changes.mirrors = .takeBack
        } else if !mirrors.isEmpty {
            changes.mirrors = .set(mirrors)
        }
        changes.checksum = checksum.map { $0 == "none" ? .takeBack : .set($0) }
        changes.user = user.map { $0 == "none" ? .takeBack : .set($0) }
        if passwordFile == "none" {
            changes.password = .takeBack
        } else if let passwordFile {
            changes.password = .set(try input.password(passwordFile))
        }
        if startAt == "none" {
            changes.startAt = .takeBack
        } else if let startAt {
            changes.startAt = .set(try Clock.startAt(startAt))
        }
        changes.output = output.map { $0.isEmpty ? .takeBack : .set($0) }
        changes.directory = directory.map { $0 == "none" ? .takeBack : .set($0) }
        return changes
    }
}
