import ArgumentParser
import Glibc
import TaskModel

struct Upload: DaemonCommand {
    enum Method: String, CaseIterable, ExpressibleByArgument {
        case put = "PUT"
        case post = "POST"

        init?(argument: String) { self.init(rawValue: argument.uppercased()) }
    }

    static let configuration = CommandConfiguration(
        abstract: "Queues an upload and prints its id.",
        discussion: """
            The file is read when the task runs: leave it in place until then, as it is. One that changes after its \
            upload began pauses the task; resume sends it as it is then.

            EXAMPLES:
              dlctl upload report.tar https://example.org/in/report.tar
              dlctl upload --wait --method POST data.json https://example.org/api
              dlctl upload photo.jpg https://example.org/form --form title=Sea --file-field image
              dlctl upload --user me --password-file ~/.secret report.tar sftp://example.org/home/me/report.tar
            """)

    @Argument(help: "What to upload.")
    var file: String

    @Argument(help: "Where to.")
    var url: String

    @Option(help: "The request's method; without it PUT, and POST for a form.")
    var method: Method?

    @Option(
        name: .customLong("form"), parsing: .singleValue,
        help: ArgumentHelp(
            """
            A field of a form (multipart/form-data) that the file goes in; may be repeated. @FILE or @- reads fields \
            from there, one a line.
            """, valueName: "name=value"))
    var form: [String] = []

    @Option(help: ArgumentHelp("The file's name in the form; without it: file.", valueName: "name"))
    var fileField: String?

    @Option(help: ArgumentHelp("The media type of the body, or of the file in the form.", valueName: "type"))
    var contentType: String?

    @OptionGroup var transfer: TransferOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: Dlctl
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        var input = InputText()
        var task = try transfer.resolve(&input)
        task.kind = .upload
        task.url = url
        task.file = try source()
        task.method = method?.rawValue
        task.form = try input.fields(form)
        task.fileField = fileField
        task.contentType = contentType
        let names = FieldNames(urls: [url], file: file)
        do throws(FieldError) {
            try task.check()
        } catch {
            throw Failure(error, names: names)
        }
        let client = try context.connect()
        let ids = try context.add([task], names: names, client: client)
        try context.conclude(ids, wait: transfer.wait ? ids : nil, client: client)
    }

    /// The source as the daemon can find it. That it may be read is the daemon's to judge.
    private func source() throws(Failure) -> String {
        func refuse(_ message: String) -> Failure { .usage("\(file): \(message)", field: "file") }
        guard !file.isEmpty else { throw .usage("file: is empty; name the file to upload", field: "file") }
        var information = stat()
        guard let path = FilePath.absoluteFile(file) else { throw refuse(SystemText.error(errno)) }
        if stat(path, &information) == 0 {
            guard information.st_mode & S_IFMT == S_IFREG else { throw refuse("is not a regular file") }
        } else if errno == ENOENT || errno == ENOTDIR {
            throw refuse(SystemText.error(errno))
        }
        return path
    }
}
