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
            The file is read when the task runs: leave it in place until then.

            EXAMPLES:
              dlctl upload report.tar https://example.org/in/report.tar
              dlctl upload --wait --method POST data.json https://example.org/api
            """)

    @Argument(help: "What to upload.")
    var file: String

    @Argument(help: "Where to.")
    var url: String

    @Option(help: "The request's method.")
    var method: Method = .put

    @Option(help: ArgumentHelp("The body's media type.", valueName: "type"))
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
        task.method = method.rawValue
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
