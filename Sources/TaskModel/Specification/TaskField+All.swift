extension TaskField {
    /// The fields of a task: those of downloads, those of uploads, those of both, and those that only the daemon knows.
    /// Error messages and the help list them in this order.
    package static let all: [TaskField] = numbered(ofDownloads + ofUploads + ofBoth + ofDaemon)

    /// The changeable fields in the order in which messages name them; a field that is absent here comes last.
    static let changeOrder = [
        "url", "output", "connections", "limit", "headers", "priority", "startAt", "directory", "user", "password",
        "checksum", "mirrors",
    ]

    /// The changeable fields in the order in which the help of `dlctl set` lists them; a field that is absent here
    /// comes last.
    static let changeHelpOrder = [
        "url", "mirrors", "checksum", "priority", "limit", "connections", "headers", "user", "password", "startAt",
        "output", "directory",
    ]

    private static let ofDownloads: [TaskField] = [
        TaskField(
            "metalink", .flag(\.details.metalink), kinds: .downloads, key: .ofAll,
            option: Option(
                """
                At each URL lies a Metalink of one file: that file is fetched, from all the places that it names, and \
                held against its digests. What you say of the file yourself goes first.
                """)),
        TaskField(
            "mirrors", .texts(\.details.mirrors, "a URL or a list of URLs"), word: "mirror",
            kinds: .downloads(refusal: "is for downloads alone"), secrecy: .urls, filling: .never,
            key: Key(alias: "mirrors", isOfOneEntry: true),
            option: Option(
                """
                Another URL of the very same file, best first; may be repeated. With a digest of the file the mirrors \
                are used together; without one a mirror only stands in for a URL that fails.
                """, value: "url", follows: "checksumURL"),
            change: Option(
                """
                Another URL of the very same file, best first; may be repeated. These take the place of all that the \
                task had; none takes all back.
                """, value: "url"),
            check: .mirrors),
        TaskField(
            "output", .text(\.task.output, "a file name"), kinds: .downloads, filling: .never, key: .ofOneEntry,
            option: Option("The file's name.", value: "name", short: "o"),
            change: Option(
                "The file's name; an empty one takes it back ('').", value: "name", short: "o", takesBack: ""),
            aria2: .composed(["out"]), check: .output),
        TaskField(
            "directory", .text(\.task.directory, "a directory"), kinds: .downloads, filling: .nested, key: .ofAll,
            option: Option(
                "The place, beneath the daemon's download directory unless it begins with a slash.", value: "dir",
                short: "d"),
            change: Option(
                """
                The place, as of dlctl add; or none for the daemon's download directory. What was fetched goes along, \
                on the same file system alone.
                """, value: "dir", short: "d"),
            aria2: .composed(["dir", "out"]), check: .directory),
        TaskField(
            "checksum", .text(\.details.checksum, "ALGORITHM:HEX"), kinds: .downloads, filling: .together(.digest),
            key: .ofOneEntry,
            option: Option("The digest that the file must have.", value: "algorithm:hex"),
            change: Option("The digest that the file must have; or none.", value: "algorithm:hex"),
            aria2: .composed(["checksum"]), check: .checksum),
        TaskField(
            "checksumURL", .text(\.details.checksumURL, "a URL"), word: "checksum-url", kinds: .downloads,
            secrecy: .urls, filling: .together(.digest), key: .ofAll,
            option: Option("Where that digest stands, in a list such as SHA256SUMS.", value: "url"),
            check: .checksumURL),
        TaskField(
            "size", .value(\.details.size, expected: "a whole number of bytes"), kinds: .downloads, filling: .never,
            check: .size),
        TaskField(
            "pieceHashes", .pieces(\.details.pieceHashes), kinds: .downloads(refusal: "is for downloads alone"),
            filling: .never, check: .pieceHashes),
        TaskField(
            "connections", .connections(\.details.connections), kinds: .downloads, key: .ofAll,
            option: Option(
                """
                Connections for each task: 1 to 16, or auto for as many as pay. Without it: the daemon's configuration.
                """, value: "n|auto"),
            change: Option(
                "Connections: 1 to 16, auto for as many as pay; or none for what the configuration says.",
                value: "n|auto"),
            aria2: .composed(["split", "max-connection-per-server"]), check: .connections),
        TaskField(
            "maxSize", .size(\.details.maxSize), word: "max-size", kinds: .downloads(refusal: nil), key: .ofAll,
            option: Option("A larger file fails: 500K, 2M, 1.5G.", value: "size"), check: .maxSize),
        TaskField(
            "onConflict", .conflict(\.details.onConflict), word: "on-conflict", kinds: .downloads(refusal: nil),
            key: .ofAll, option: Option("What becomes of it when the file's name is taken."),
            aria2: .composed(["allow-overwrite", "auto-file-renaming"])),
        TaskField(
            "noMtime", .flag(\.details.noMtime), word: "no-mtime", kinds: .downloads(refusal: nil), key: .ofAll,
            option: Option("Leave the file's time at the moment of its arrival."),
            aria2: .composed(["remote-time"])),
        TaskField(
            "shared", .flag(\.details.shared), kinds: .downloads(refusal: nil), key: .ofAll,
            option: Option(
                """
                Put it into the directory that all users share, and not into your own one there. It does not replace a \
                file of another user.
                """)),
    ]

    private static let ofUploads: [TaskField] = [
        TaskField(
            "file", .file(\.details.file), kinds: .uploads(refusal: "belongs to uploads; a download takes --output"),
            filling: .never, key: .ofOneEntry, check: .file),
        TaskField(
            "method", .method(\.details.method), kinds: .uploads, schemes: .httpTarget, key: .ofAll,
            option: Option("The request's method; without it PUT, and POST for a form."), check: .method),
        TaskField(
            "contentType", .text(\.details.contentType, "a media type"), word: "content-type", kinds: .uploads,
            schemes: .httpTarget, key: .ofAll,
            option: Option(
                "The media type of the body, or of the file in the form.", value: "type", follows: "fileField"),
            check: .text(limit: TaskSpecification.Limit.nameLength)),
        TaskField(
            "form", .lines(\.details.form, .form), kinds: .uploads, schemes: .httpTarget, secrecy: .value, key: .ofAll,
            option: Option(
                """
                A field of a form (multipart/form-data) that the file goes in; may be repeated. @FILE or @- reads \
                fields from there, one a line.
                """, value: "name=value"),
            check: .form),
        TaskField(
            "fileField", .text(\.details.fileField, "a name"), word: "file-field", kinds: .uploads,
            schemes: .httpTarget, key: .ofAll,
            option: Option("The file's name in the form; without it: file.", value: "name"),
            check: .text(limit: TaskSpecification.Limit.nameLength, mayBeEmpty: false)),
        TaskField(
            "descriptor", .value(\.details.descriptor, expected: "the number of a file of the last source.receive"),
            kinds: .uploads, filling: .never),
    ]

    private static let ofBoth: [TaskField] = [
        TaskField("kind", .kind(\.task.kind), filling: .never),
        TaskField(
            "url", .url(\.task.url), secrecy: .urls, filling: .never, key: .ofOneEntry,
            change: Option("Where the file is from now on.", value: "url", takesBack: nil)),
        TaskField(
            "headers", .lines(\.details.headers, .headers), word: "header", schemes: .http, secrecy: .value,
            key: .ofAll,
            option: Option(
                "A header line, 'Name: value'; may be repeated. @FILE or @- reads lines from there.", value: "line"),
            change: Option(
                """
                A header line, 'Name: value'; may be repeated. These take the place of all that the task had. @FILE or \
                @- reads lines from there; none takes all back.
                """, value: "line"),
            aria2: .composed(["header", "http-no-cache"]), check: .headers),
        TaskField(
            "user", .text(\.details.user, "a name"), secrecy: .value, filling: .together(.login), key: .ofAll,
            option: Option("The user name for the server.", value: "name"),
            change: Option("The user name for the server; none takes it and its password back.", value: "name"),
            aria2: .composed(["http-user", "ftp-user"]), check: .user),
        TaskField(
            "password", .contents(\.details.password, .password), word: "password-file", secrecy: .value,
            filling: .together(.login), key: .ofAll,
            option: Option("Its password is the first line of this file; - is standard input.", value: "file"),
            change: Option(
                "The password is the first line of this file; - is standard input, none takes it back.",
                value: "file"),
            aria2: .composed(["http-passwd", "ftp-passwd"]), check: .password),
        TaskField(
            "cookies", .contents(\.details.cookies, .cookies), schemes: .http, secrecy: .value, key: .ofAll,
            option: Option(
                "Cookies to send, in Netscape's format: each to the servers that it names; their text is sent.",
                value: "file"),
            check: .cookies),
        TaskField(
            "userAgent", .text(\.details.userAgent), word: "user-agent", schemes: .http, key: .ofAll,
            option: Option("The User-Agent to send.", value: "text"), aria2: .option("user-agent"),
            check: .text(limit: TaskSpecification.Limit.headerLength)),
        TaskField(
            "referer", .text(\.details.referer, "a URL"), schemes: .http, secrecy: .urls, key: .ofAll,
            option: Option("The Referer to send.", value: "url"), aria2: .composed(["referer"]),
            check: .text(limit: TaskSpecification.Limit.headerLength)),
        TaskField(
            "proxy", .text(\.details.proxy, "a URL such as http://proxy.example.org:3128"), secrecy: .value,
            key: .ofAll,
            option: Option("http://, https://, socks5:// or socks5h:// with host and port.", value: "url"),
            aria2: .composed(["http-proxy", "https-proxy", "ftp-proxy", "all-proxy"]), check: .proxy),
        TaskField(
            "caCertificates", .contents(\.details.caCertificates, .certificates), word: "cacert", key: .ofAll,
            option: Option(
                "Certificates (PEM) to trust in place of the system's; their text is sent.", value: "file"),
            check: .certificates),
        TaskField(
            "priority", .priority(\.task.priority), key: .ofAll, option: Option("Which ready task goes first."),
            change: Option("Which ready task goes first.")),
        TaskField(
            "now", .now(\.task.priority), filling: .never, key: .ofAll,
            option: Option(
                """
                Start before all others, and beside them where all slots are taken, a few of yours at a time; short \
                for --priority now.
                """)),
        TaskField(
            "limit", .rate(\.details.limit), key: .ofAll,
            option: Option("Bytes a second at most: 500K, 2M, 1.5G.", value: "rate"),
            change: Option("Bytes a second at most: 500K, 2M, 1.5G; or none.", value: "rate"),
            aria2: .composed(["max-download-limit"]), check: .limit),
        TaskField(
            "startAt", .time(\.details.startAt, text: \.details.startAtText), word: "start-at",
            filling: .together(.start), key: .ofAll,
            option: Option(
                "Wait until then: 2030-01-31T22:00, 2030-01-31 or 22:00 in local time, 2030-01-31T22:00Z, or +2h.",
                value: "time"),
            change: Option(
                "Wait until then: 2030-01-31T22:00, 22:00 in local time, +2h; or none.", value: "time"),
            check: .startAt),
        TaskField(
            "startAtText", .text(stored: \.details.startAtText), word: "start-at", filling: .together(.start),
            check: .startAtText),
        TaskField(
            "afterTask", .task(\.details.afterTask), word: "after-task", key: .ofAll,
            option: Option("Wait until this task has completed.", value: "id")),
        TaskField(
            "batch", .text(\.task.batch, "a name"),
            option: Option("The name that a group of tasks shares.", value: "name"),
            check: .text(limit: TaskSpecification.Limit.nameLength, mayBeEmpty: false)),
        TaskField(
            "key", .text(\.task.key, "a name"), filling: .never, key: .ofOneEntry,
            option: Option("Your own name for the task; a second one with it is not added.", value: "key"),
            aria2: .composed(["gid"]),
            check: .text(limit: TaskSpecification.Limit.nameLength, mayBeEmpty: false)),
        TaskField(
            "paused", .flag(\.details.paused), key: .ofAll, option: Option("Add without starting."),
            aria2: .option("pause")),
    ]

    /// The fields that the daemon adds. They are stored with the secrets and are not part of a task's JSON.
    static let ofDaemon: [TaskField] = [
        TaskField(
            "groups", .list(\.details.groups, expected: "an array of numbers"), secrecy: .value, filling: .never),
        TaskField("passedSource", .text(stored: \.details.passedSource), secrecy: .value, filling: .never),
    ]
}
