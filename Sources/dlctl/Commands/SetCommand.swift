import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

/// `set`; named so that it does not hide Swift's own `Set`.
struct SetCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Changes what a task asks for, and keeps its bytes.",
        discussion: """
            A task that runs goes on at once with what is asked now. With another URL, what was fetched counts on \
            where the server vouches that the file is the same; a task that failed, or that waits for its server or \
            for a fresh URL, goes on by itself. A completed task cannot be changed, and a cancelled one only after \
            dlctl retry.

            The word none takes back what was asked for; with --output, where it could be a name, '' does.

            EXAMPLES:
              dlctl set 7 --url 'https://example.org/a.iso?signature=fresh'
              dlctl set 7 --limit 500K --priority low
              dlctl set 7 --limit none --connections none
              dlctl set 7 --output other.iso
              dlctl set 7 --start-at 22:00
              dlctl set 7 --header @headers.txt        in place of those that it had
            """)

    @Argument(help: "The task's id.")
    var id: TaskID

    @Option(help: ArgumentHelp("Where the file is from now on.", valueName: "url"))
    var url: String?

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
        help: ArgumentHelp(
            "Wait until then: 2030-01-31T22:00, 22:00 in local time, +2h; or none.", valueName: "time"))
    var startAt: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file's name; an empty one takes it back ('').", valueName: "name"))
    var output: String?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: Dlctl
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        guard
            url != nil || priority != nil || limit != nil || connections != nil || !headers.isEmpty || startAt != nil
                || output != nil
        else {
            throw ValidationError(
                "Say what to change: --url, --priority, --limit, --connections, --header, --start-at or --output.")
        }
        if headers.count > 1, headers.contains("none") {
            throw ValidationError("--header none takes all headers back, and stands alone.")
        }
    }

    func perform(_ context: Context) throws {
        var input = InputText()
        let changes = try changes(&input)
        let client = try context.connect()
        let task: TaskStatus
        do throws(ClientError) {
            task = try client.update(id, changes)
        } catch .rpc(let answer) where answer.code == RPCError.Number.unknownTask {
            throw Failure.unknown(id)
        } catch {
            throw Failure(error, names: FieldNames(urls: url.map { [$0] } ?? []))
        }
        if context.json {
            context.output.json(task)
        } else {
            context.output.line("task \(task.id) changed (\(Describe.state(task, now: Clock.now())))")
        }
    }

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
        if startAt == "none" {
            changes.startAt = .takeBack
        } else if let startAt {
            changes.startAt = .set(try Clock.startAt(startAt))
        }
        if let output { changes.output = output.isEmpty ? .takeBack : .set(output) }
        return changes
    }
}
