import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

struct Backup: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Saves the daemon's database to a file, while the daemon runs.",
        usage: "dlctl backup [--force] <file>",
        discussion: """
            The file is complete or absent, and readable by you alone: it contains every user's tasks and passwords. \
            It does not contain the files that were downloaded. To restore it, stop the daemon, \
            move every dld.db* out of its state directory, above all dld.db-wal, which would damage another database, \
            and put the file there as dld.db.

            EXAMPLES:
              dlctl backup /srv/backup/dld.db
              dlctl backup --force dld.db          replace an earlier backup
            """)

    @Argument(help: "The file to write.")
    var file: String

    @Flag(help: "Replace the file if it exists.")
    var force = false

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    /// The value printed with `--json`.
    private struct Shown: Encodable {
        var path: String
        var bytes: Int64
        var tasks: Int
        var lastEvent: Int64
        var journal: String
    }

    func perform(_ context: Context) throws {
        let file = try BackupFile(file, replacing: force)
        let client = try context.connect()
        let copy = try client.backUp()
        var offset: Int64? = 0
        while let start = offset {
            let part = try client.readBackup(at: start)
            try file.append(part.bytes)
            offset = part.next
        }
        guard file.size == copy.bytes else {
            throw Failure(.failed, code: .truncated, "the daemon sent \(file.size) of \(copy.bytes) bytes; try again")
        }
        try file.publish()
        if context.json {
            context.output.json(
                Shown(
                    path: file.path, bytes: copy.bytes, tasks: copy.tasks, lastEvent: copy.lastEvent,
                    journal: copy.journal))
        } else {
            let tasks = "\(copy.tasks) \(copy.tasks == 1 ? "task" : "tasks")"
            context.remark(
                "saved \(tasks) to \(Escape.visible(file.path)) (\(ByteSize.describe(copy.bytes)))")
        }
    }
}
