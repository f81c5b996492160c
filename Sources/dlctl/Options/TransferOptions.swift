import ArgumentParser
import TaskFiles
import TaskModel

/// The options that `add` and `upload` share.
struct TransferOptions: ParsableArguments {
    @Option(
        name: .customLong("header"), parsing: .singleValue,
        help: ArgumentHelp(
            "A header line, 'Name: value'; may be repeated. @FILE or @- reads lines from there.", valueName: "line"))
    var headers: [String] = []

    @Option(help: ArgumentHelp("The user name for the server.", valueName: "name"))
    var user: String?

    @Option(help: ArgumentHelp("Its password is the first line of this file; - is standard input.", valueName: "file"))
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "Cookies to send, in Netscape's format: each to the servers that it names; their text is sent.",
            valueName: "file"))
    var cookies: String?

    @Option(help: ArgumentHelp("The User-Agent to send.", valueName: "text"))
    var userAgent: String?

    @Option(help: ArgumentHelp("The Referer to send.", valueName: "url"))
    var referer: String?

    @Option(help: ArgumentHelp("http://, https://, socks5:// or socks5h:// with host and port.", valueName: "url"))
    var proxy: String?

    @Option(
        help: ArgumentHelp(
            "Certificates (PEM) to trust in place of the system's; their text is sent.", valueName: "file"))
    var cacert: String?

    @Option(help: "Which ready task goes first.")
    var priority: TaskPriority = .normal

    @Flag(
        help: """
            Start before all others, and beside them where all slots are taken, a few of yours at a time; short for \
            --priority now.
            """)
    var now = false

    @Option(help: ArgumentHelp("Bytes a second at most: 500K, 2M, 1.5G.", valueName: "rate"))
    var limit: RateArgument?

    @Option(
        help: ArgumentHelp(
            "Wait until then: 2030-01-31T22:00, 2030-01-31 or 22:00 in local time, 2030-01-31T22:00Z, or +2h.",
            valueName: "time"))
    var startAt: String?

    @Option(help: ArgumentHelp("Wait until this task has completed.", valueName: "id"))
    var afterTask: TaskID?

    @Option(help: ArgumentHelp("The name that a group of tasks shares.", valueName: "name"))
    var batch: String?

    @Option(help: ArgumentHelp("Your own name for the task; a second one with it is not added.", valueName: "key"))
    var key: String?

    @Flag(help: "Add without starting.")
    var paused = false

    @Flag(help: "Wait until every task has ended, with a progress bar on a terminal.")
    var wait = false

    init() {}

    /// Reads the files that the options name and validates the values that can be checked here.
    ///
    /// - Returns: a task without a URL that contains the values of the options.
    func resolve(_ input: inout InputText) throws(Failure) -> TaskSpecification {
        var task = TaskSpecification(url: "")
        task.headers = try input.headers(headers)
        task.user = user
        if let passwordFile {
            guard user != nil else {
                throw .usage("--password-file needs --user NAME beside it", field: "--password-file")
            }
            task.password = try input.password(passwordFile)
        }
        if let cookies {
            task.cookies = try input.readText(cookies, for: "--cookies", limit: SecretText.Limit.cookies)
        }
        task.userAgent = userAgent
        task.referer = referer
        task.proxy = proxy
        if let cacert {
            task.caCertificates = try input.readText(cacert, for: "--cacert", limit: SecretText.Limit.certificates)
        }
        guard !now || priority == .normal || priority == .now else {
            throw .usage(
                "--now goes before every priority; give --now or --priority \(priority.rawValue)", field: "--now")
        }
        task.priority = now ? .now : priority
        task.limit = limit?.bytesPerSecond
        task.startAt = try startAt.map { text throws(Failure) in try Clock.startAt(text) }
        task.startAtText = startAt.flatMap { PointInTime.countsFromNow($0) ? $0 : nil }
        task.afterTask = afterTask
        task.batch = batch
        task.key = key
        task.paused = paused
        return task
    }
}
