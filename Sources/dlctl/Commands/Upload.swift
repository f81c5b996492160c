import ArgumentParser
import Glibc
import TaskModel

struct Upload: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Queues uploads and prints their ids, one a line.",
        usage: "dlctl upload [<options>] <file> ... <url>",
        discussion: """
            A file is read when its task runs: leave it in place until then, as it is. One that changes after its \
            upload began pauses the task; resume sends it as it is then.

            Beneath a URL that ends in a slash a file goes under its own name. Several files need such a URL: all of \
            them are queued, or none. A form (--form, --file-field) of one file goes to the URL as it is.

            EXAMPLES:
              dlctl upload report.tar https://example.org/in/report.tar
              dlctl upload a.tar b.tar https://example.org/in/
              dlctl upload --wait --method POST data.json https://example.org/api
              dlctl upload photo.jpg https://example.org/form --form title=Sea --file-field image
              dlctl upload --user me --password-file ~/.secret report.tar sftp://example.org/home/me/report.tar
            """)

    @Argument(help: ArgumentHelp("What to upload, and last where to.", valueName: "file|url"))
    var arguments: [String] = []
    private var words: [String] { arguments.flatMap { ArgumentRuns.split($0) } }
    var files: [String] { words.dropLast() }
    var url: String { words.last ?? "" }

    @OptionGroup var fields: FieldOptions<UploadFields>
    @OptionGroup var transfer: TransferOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        let files = files
        guard !files.isEmpty else { throw ValidationError("Give the files and the URL: dlctl upload FILE… URL.") }
        guard files.count == 1 || transfer.key == nil else { throw ValidationError("--key is for one file alone.") }
    }

    func perform(_ context: Context) throws {
        var input = InputText()
        let options = try resolve(&input)
        let files = files
        let urls = try urls(of: files)
        let names = FieldNames(urls: urls, files: files)
        var tasks: [TaskSpecification] = []
        for (index, (file, url)) in zip(files, urls).enumerated() {
            var task = options
            task.url = url
            task.file = try source(file)
            do throws(FieldError) {
                try task.check()
            } catch {
                var placed = error
                placed.field = "tasks[\(index)].\(error.field)"
                throw Failure(placed, names: names)
            }
            tasks.append(task)
        }
        let client = try context.connect()
        let added = try context.addUploads(tasks, names: names, client: client)
        try context.conclude(added, wait: transfer.wait ? added.ids : nil, client: client)
    }

    /// Returns a task without a URL and a file that contains the values of the options.
    func resolve(_ input: inout InputText) throws(Failure) -> TaskSpecification {
        var values = UnpackedTask(TaskSpecification(kind: .upload, url: ""))
        try transfer.resolve(&input, into: &values)
        try fields.resolve(&input, into: &values)
        return values.packed
    }

    /// Returns the destination URL of each file.
    func urls(of files: [String]) throws(Failure) -> [String] {
        func refuse(_ message: String) -> Failure { .usage("\(url): \(message)", field: "url") }
        let isForm = fields.isGiven("form") || fields.isGiven("fileField")
        switch UploadPlace(url) {
        case _ where files.count == 1 && isForm: return [url]
        case .file where files.count == 1: return [url]
        case .file: throw refuse("several files need a URL that ends in /; each goes beneath it under its own name")
        case .directoryWithQuery:
            throw refuse("no file's name can follow a query; write the name before it, with one file a call")
        case .directory: break
        }
        var sources: [String: String] = [:]
        var urls: [String] = []
        for file in files {
            let url = UploadPlace.url(of: file, beneath: url)
            if let other = sources.updateValue(file, forKey: url) {
                throw refuse("\(other) and \(file) would both go to \(url); upload them to different places")
            }
            urls.append(url)
        }
        return urls
    }

    /// Returns the source's absolute path for the daemon. The daemon checks whether the file may be read.
    private func source(_ file: String) throws(Failure) -> String {
        func refuse(_ message: String) -> Failure { .usage("\(file): \(message)", field: "file") }
        guard !file.isEmpty else { throw .usage("file: is empty; name the file to upload", field: "file") }
        var information = stat()
        guard let path = FilePath.absoluteFile(file) else { throw refuse(SystemText.error(errno)) }
        if stat(path, &information) == 0 {
            guard information.st_mode & S_IFMT == S_IFREG else { throw refuse("is not a regular file") }
        } else if errno == ENOENT || errno == ENOTDIR {
            let isURL = file.contains("://")
            throw refuse(SystemText.error(errno) + (isURL ? "; the URL comes last: dlctl upload FILE… URL" : ""))
        }
        return path
    }
}
