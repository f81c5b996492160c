import ArgumentParser
import Glibc
import TaskModel

struct Upload: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Queues uploads and prints their ids, one per line.",
        usage: "dlctl upload [<options>] <file> ... <url>",
        discussion: """
            A file is read when its task runs, so keep it in place and unchanged until then. If the file changes after \
            its upload began, the task is paused; resume sends the changed file.

            If the URL ends in a slash, each file is stored below it under its own name. Several files require such a \
            URL; either all of them are queued or none. A form (--form, --file-field) with one file is sent to the URL \
            itself.

            The file - is standard input, which dlctl copies to a temporary file in $TMPDIR or /var/tmp first. Such an \
            upload cannot go on after a restart of a daemon that is not a systemd service. With --recursive, each regular file beneath a directory is stored under its relative path.

            EXAMPLES:
              dlctl upload report.tar https://example.org/in/report.tar
              dlctl upload a.tar b.tar https://example.org/in/
              dlctl upload --wait --method POST data.json https://example.org/api
              dlctl upload a.jpg https://example.org/in --form title=Sea --file-field image
              tar -c photos | dlctl upload - https://example.org/in/photos.tar
              dlctl upload -r photos sftp://example.org/home/me/photos/
              dlctl upload --user me --password-file ~/.secret a.tar sftp://example.org/in/
            """)

    @Argument(
        help: ArgumentHelp(
            "The files to upload, or - for standard input, then the URL to upload them to.", valueName: "file|url"),
        completion: .file())
    var arguments: [String] = []
    private var words: [String] { arguments.flatMap { ArgumentRuns.split($0) } }
    var files: [String] { words.dropLast() }
    var url: String { words.last ?? "" }

    @Flag(
        name: .shortAndLong,
        help: "Upload the files beneath a directory to a URL that ends in a slash. Links are passed over.")
    var recursive = false

    @OptionGroup var fields: FieldOptions<UploadFields>
    @OptionGroup var transfer: TransferOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        let files = files
        guard !files.isEmpty else { throw ValidationError("Give the files and the URL: dlctl upload FILE… URL.") }
        guard url.contains("://") || !files.contains(where: { $0.contains("://") }) else {
            throw ValidationError("The URL comes last: dlctl upload FILE… URL.")
        }
        guard files.count == 1 && !recursive || transfer.key == nil else {
            throw ValidationError("--key can be used with one file only.")
        }
        guard !files.contains("-") || files.count == 1 && !recursive else {
            throw ValidationError("- is standard input and can be used alone only.")
        }
        guard files.count == 1 || !recursive else {
            throw ValidationError("--recursive takes one directory and a URL: dlctl upload -r DIR URL/.")
        }
    }

    func perform(_ context: Context) throws {
        var input = InputText()
        let options = try resolve(&input)
        var (files, urls) = (files, [String]())
        if recursive {
            (files, urls) = try tree(context)
        } else {
            urls = try self.urls(of: files)
        }
        var spool: SpooledInput?
        if files == ["-"] {
            try input.useStandardInput(for: "file")
            spool = try SpooledInput()
        }
        let names = FieldNames(urls: urls, files: files)
        var tasks: [TaskSpecification] = []
        for (index, (file, url)) in zip(files, urls).enumerated() {
            var task = options
            task.url = url
            task.file = if let path = spool?.path { path } else { try source(file) }
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
        let isFollowing = transfer.wait && !transfer.needsStates
        if isFollowing { try context.follow(client) }
        let added: AddedTasks
        if let descriptor = spool?.descriptor {
            let source = OpenSources(closing: descriptor)
            added = try context.addUploads(tasks, from: source, names: names, client: client)
        } else {
            added = try context.addUploads(tasks, names: names, client: client)
        }
        try context.conclude(
            added, cookies: transfer.cookies, wait: transfer.wait ? added.ids : nil, command: transfer.command,
            client: client,
            isFollowing: isFollowing)
    }

    /// Returns a task without a URL and a file that contains the values of the options.
    func resolve(_ input: inout InputText) throws(Failure) -> TaskSpecification {
        var values = UnpackedTask(TaskSpecification(kind: .upload, url: ""))
        try transfer.resolve(&input, into: &values)
        try fields.resolve(&input, into: &values)
        return values.packed
    }

    /// Returns the files beneath a directory and their destination URLs.
    func tree(_ context: Context) throws(Failure) -> (files: [String], urls: [String]) {
        let url = url
        var directory = files[0]
        while directory.utf8.count > 1, directory.hasSuffix("/") { directory.removeLast() }
        guard UploadPlace(url) == .directory else {
            throw .usage("\(url): --recursive requires a URL that ends in /", field: "url")
        }
        let tree = try FileTree(directory)
        context.report(warnings: tree.skipped.map { "\(directory)/\($0), and is passed over" }, cookies: nil)
        guard !tree.files.isEmpty else {
            throw .usage("\(directory): has no file to upload", field: "file")
        }
        return (
            tree.files.map { "\(directory)/\($0)" },
            tree.files.map { UploadPlace.url(ofRelative: $0, beneath: url) }
        )
    }

    /// Returns the destination URL of each file.
    func urls(of files: [String]) throws(Failure) -> [String] {
        // Splits the arguments once, not once for each file.
        let url = url
        func refuse(_ message: String) -> Failure { .usage("\(url): \(message)", field: "url") }
        let isForm = fields.isGiven("form") || fields.isGiven("fileField")
        switch UploadPlace(url) {
        case _ where files.count == 1 && isForm: return [url]
        case .file where files.count == 1: return [url]
        case .directory where files == ["-"]:
            throw refuse("standard input has no name; name the file in the URL")
        case .file:
            throw refuse("several files require a URL that ends in /; each is stored below it under its own name")
        case .directoryWithQuery:
            throw refuse(
                "a file name cannot be appended to a query; upload one file at a time with the name before the query")
        case .directory: break
        }
        var sources: [String: String] = [:]
        var urls: [String] = []
        for file in files {
            let place = UploadPlace.url(of: file, beneath: url)
            if let other = sources.updateValue(file, forKey: place) {
                throw refuse("\(other) and \(file) would both be stored at \(place); upload them to different URLs")
            }
            urls.append(place)
        }
        return urls
    }

    /// Returns the source's absolute path for the daemon. The daemon checks whether the file may be read.
    private func source(_ file: String) throws(Failure) -> String {
        func refuse(_ message: String) -> Failure { .usage("\(file): \(message)", field: "file") }
        guard !file.isEmpty else { throw .usage("file: is empty; give the path of the file to upload", field: "file") }
        var information = stat()
        guard let path = FilePath.absoluteFile(file) else { throw refuse(SystemText.error(errno)) }
        if stat(path, &information) == 0 {
            let isDirectory = information.st_mode & S_IFMT == S_IFDIR
            if isDirectory { throw refuse("is a directory; -r uploads the files beneath it to a URL that ends in /") }
            guard information.st_mode & S_IFMT == S_IFREG else { throw refuse("is not a regular file") }
        } else if errno == ENOENT || errno == ENOTDIR {
            throw refuse(SystemText.error(errno))
        }
        return path
    }
}
