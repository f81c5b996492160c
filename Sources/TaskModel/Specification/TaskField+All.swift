extension TaskField {
    /// The fields of a task: those of downloads, those of uploads, those of both, and those that only the daemon knows.
    /// Error messages and the help list them in this order.
    package static let all: [TaskField] = numbered(ofDownloads + ofUploads + ofBoth + ofDaemon)

    /// The changeable fields in the order in which messages name them; a field that is absent here comes last.
    static let changeOrder = [
        "url", "output", "connections", "limit", "headers", "priority", "startAt", "directory", "user", "password",
        "checksum", "mirrors", "proxy", "insecure",
    ]

    /// The changeable fields in the order in which the help of `dlctl set` lists them; a field that is absent here
    /// comes last.
    static let changeHelpOrder = [
        "url", "mirrors", "checksum", "priority", "limit", "connections", "headers", "user", "password", "proxy",
        "insecure", "startAt", "output", "directory",
    ]

    private static let ofDownloads: [TaskField] = [
        TaskField(
            "metalink", .flag(\.details.metalink), kinds: .downloads, key: .ofAll,
            option: Option(
                """
                Each URL is a Metalink of one file: dld downloads that file from the sources in the Metalink and \
                verifies its digests. Options given here take precedence over the Metalink.
                """)),
        TaskField(
            "mirrors", .texts(\.details.mirrors, "a URL or a list of URLs"), word: "mirror",
            kinds: .downloads(refusal: "applies to downloads only"), secrecy: .urls, filling: .never,
            key: Key(alias: "mirrors", isOfOneEntry: true),
            option: Option(
                """
                Another URL of the same file, best first; may be repeated. With a digest of the file, all URLs are \
                used together; without a digest, a mirror is used only if another URL fails.
                """, value: "url", follows: "checksumURL"),
            change: Option(
                """
                Another URL of the same file, best first; may be repeated. These replace all earlier mirrors; none \
                removes them.
                """, value: "url"),
            check: .mirrors),
        TaskField(
            "output", .text(\.task.output, "a file name"), kinds: .downloads, filling: .never, key: .ofOneEntry,
            option: Option("The name of the file.", value: "name", short: "o"),
            change: Option(
                "The name of the file; '' removes it.", value: "name", short: "o", takesBack: ""),
            aria2: .composed(["out"]), check: .output),
        TaskField(
            "directory", .text(\.task.directory, "a directory"), kinds: .downloads, filling: .nested, key: .ofAll,
            option: Option(
                """
                The directory; a relative path is below the daemon's download directory, or below the current one if it \
                begins with a period, as . does.
                """, value: "dir",
                short: "d"),
            change: Option(
                """
                The directory, as for dlctl add; none selects the daemon's download directory. Downloaded bytes are \
                moved too, but only within one file system.
                """, value: "dir", short: "d"),
            aria2: .composed(["dir", "out"]), check: .directory),
        TaskField(
            "checksum", .text(\.details.checksum, "ALGORITHM:HEX"), kinds: .downloads, filling: .together(.digest),
            key: .ofOneEntry,
            option: Option("The expected digest of the file.", value: "algorithm:hex"),
            change: Option("The expected digest of the file; none removes it.", value: "algorithm:hex"),
            aria2: .composed(["checksum"]), check: .checksum),
        TaskField(
            "checksumURL", .text(\.details.checksumURL, "a URL"), word: "checksum-url", kinds: .downloads,
            secrecy: .urls, filling: .together(.digest), key: .ofAll,
            option: Option("The URL of a list with the digest, such as SHA256SUMS.", value: "url"),
            change: Option("The URL of a list with the digest, in place of a digest; none removes it.", value: "url"),
            check: .checksumURL),
        TaskField(
            "size", .value(\.details.size, expected: "a whole number of bytes"), kinds: .downloads, filling: .never,
            check: .size),
        TaskField(
            "pieceHashes", .pieces(\.details.pieceHashes), kinds: .downloads(refusal: "applies to downloads only"),
            filling: .never, check: .pieceHashes),
        TaskField(
            "connections", .connections(\.details.connections), kinds: .downloads, key: .ofAll,
            option: Option(
                """
                The connections of each task: 1 to 16, or auto to adapt their number. Without this option the daemon's \
                configuration applies.
                """, value: "n|auto"),
            change: Option(
                "The connections: 1 to 16, auto to adapt their number, or none for the configured value.",
                value: "n|auto"),
            aria2: .composed(["split", "max-connection-per-server"]), check: .connections),
        TaskField(
            "maxSize", .size(\.details.maxSize), word: "max-size", kinds: .downloads(refusal: nil), key: .ofAll,
            option: Option("The maximum size of the file; a larger file fails: 500K, 2M, 1.5G.", value: "size"),
            change: Option("The maximum size of the file; none removes it.", value: "size"),
            check: .maxSize),
        TaskField(
            "onConflict", .conflict(\.details.onConflict), word: "on-conflict", kinds: .downloads(refusal: nil),
            key: .ofAll, option: Option("What to do if the file name already exists."),
            change: Option("What to do if the file name already exists; none returns to the configuration."),
            aria2: .composed(["allow-overwrite", "auto-file-renaming"])),
        TaskField(
            "update", .flag(\.details.update), kinds: .downloads(refusal: nil), key: .ofAll,
            option: Option(
                """
                Fetch the file again only if it changed: if the server has the version that is there, the task completes \
                without a byte.
                """),
            aria2: .option("conditional-get"), check: .update),
        TaskField(
            "nameFrom", .nameSource(\.details.nameFrom), word: "name-from", kinds: .downloads(refusal: nil),
            key: .ofAll,
            option: Option(
                """
                Where the file's name comes from: the URL, the final URL after redirects, or the header \
                Content-Disposition. By default it is the first of header and URL that says what kind of file it is.
                """),
            change: Option("Where the file's name comes from, as for dlctl add; or none.")),
        TaskField(
            "noMtime", .flag(\.details.noMtime), word: "no-mtime", kinds: .downloads(refusal: nil), key: .ofAll,
            option: Option("Keep the time of the download as the file's modification time."),
            change: Option("Keep the time of the download as the file's modification time."),
            aria2: .composed(["remote-time"])),
        TaskField(
            "shared", .flag(\.details.shared), kinds: .downloads(refusal: nil), key: .ofAll,
            option: Option(
                """
                Store the file in the directory that all users share, not in your own one. It does not replace a file \
                of another user.
                """)),
    ]

    private static let ofUploads: [TaskField] = [
        TaskField(
            "file", .file(\.details.file),
            kinds: .uploads(refusal: "applies to uploads only; for a download use --output"),
            filling: .never, key: .ofOneEntry, check: .file),
        TaskField(
            "method", .method(\.details.method), kinds: .uploads, schemes: .httpTarget, key: .ofAll,
            option: Option("The request method; the default is PUT, or POST for a form."), check: .method),
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
                A field of the form (multipart/form-data) that contains the file; may be repeated. @FILE or @- reads \
                fields from a file or standard input, one per line.
                """, value: "name=value"),
            check: .form),
        TaskField(
            "fileField", .text(\.details.fileField, "a name"), word: "file-field", kinds: .uploads,
            schemes: .httpTarget, key: .ofAll,
            option: Option("The name of the file's field in the form; the default is file.", value: "name"),
            check: .text(limit: TaskSpecification.Limit.nameLength, mayBeEmpty: false)),
        TaskField(
            "descriptor", .value(\.details.descriptor, expected: "the number of a file of the last source.receive"),
            kinds: .uploads, filling: .never),
    ]

    private static let ofBoth: [TaskField] = [
        TaskField("kind", .kind(\.task.kind), filling: .never),
        TaskField(
            "url", .url(\.task.url), secrecy: .urls, filling: .never, key: .ofOneEntry,
            change: Option("The new URL of the file.", value: "url", takesBack: nil)),
        TaskField(
            "headers", .lines(\.details.headers, .headers), word: "header", schemes: .http, secrecy: .value,
            key: .ofAll,
            option: Option(
                "A header line, 'Name: value'; may be repeated. @FILE or @- reads lines from a file or standard input.",
                value: "line"),
            change: Option(
                """
                A header line, 'Name: value'; may be repeated. These replace all earlier header lines; none removes \
                them. @FILE or @- reads lines from a file or standard input.
                """, value: "line"),
            aria2: .composed(["header", "http-no-cache"]), check: .headers),
        TaskField(
            "user", .text(\.details.user, "a name"), secrecy: .value, filling: .together(.login), key: .ofAll,
            option: Option("The user name for the server.", value: "name"),
            change: Option("The user name for the server; none removes it and the password.", value: "name"),
            aria2: .composed(["http-user", "ftp-user"]), check: .user),
        TaskField(
            "password", .contents(\.details.password, .password), word: "password-file", secrecy: .value,
            filling: .together(.login), key: .ofAll,
            option: Option("A file whose first line is the password; - is standard input.", value: "file"),
            change: Option(
                "A file whose first line is the password; - is standard input, none removes the password.",
                value: "file"),
            aria2: .composed(["http-passwd", "ftp-passwd"]), check: .password),
        TaskField(
            "cookies", .contents(\.details.cookies, .cookies), schemes: .http, secrecy: .value, key: .ofAll,
            option: Option(
                "Cookies in Netscape format, which dlctl passes to the daemon. Each goes to its servers only.",
                value: "file"),
            change: Option("Cookies in Netscape format, in place of earlier ones; none removes them.", value: "file"),
            check: .cookies),
        TaskField(
            "netrc", .contents(\.details.netrc, .netrc), secrecy: .value, key: .ofAll,
            option: Option(
                """
                Logins by server in netrc format, which dlctl passes to the daemon. Each goes to its server only, also \
                where redirects and mirrors lead.
                """, value: "file"),
            change: Option("Logins by server in netrc format, as for dlctl add; none removes them.", value: "file"),
            check: .netrc),
        TaskField(
            "userAgent", .text(\.details.userAgent), word: "user-agent", schemes: .http, key: .ofAll,
            option: Option("The User-Agent header.", value: "text"),
            change: Option("The User-Agent header; none removes it.", value: "text"), aria2: .option("user-agent"),
            check: .text(limit: TaskSpecification.Limit.headerLength)),
        TaskField(
            "referer", .text(\.details.referer, "a URL"), schemes: .http, secrecy: .urls, key: .ofAll,
            option: Option("The Referer header.", value: "url"),
            change: Option("The Referer header; none removes it.", value: "url"), aria2: .composed(["referer"]),
            check: .text(limit: TaskSpecification.Limit.headerLength)),
        TaskField(
            "proxy", .text(\.details.proxy, "a URL such as http://proxy.example.org:3128"), secrecy: .value,
            key: .ofAll,
            option: Option("The proxy: http://, https://, socks5:// or socks5h:// with host and port.", value: "url"),
            change: Option(
                "The proxy, as for dlctl add; none returns to that of the configuration.", value: "url"),
            aria2: .composed(["http-proxy", "https-proxy", "ftp-proxy", "all-proxy"]), check: .proxy),
        TaskField(
            "caCertificates", .contents(\.details.caCertificates, .certificates), word: "cacert", key: .ofAll,
            option: Option(
                "A PEM file of certificates to trust instead of the system's, which dlctl passes to the daemon.",
                value: "file"),
            change: Option("A PEM file of certificates to trust, as for dlctl add; none removes them.", value: "file"),
            check: .certificates),
        TaskField(
            "insecure", .flag(\.details.insecure), key: .ofAll,
            option: Option(
                """
                Do not verify the certificates of servers: whoever is on the way can read and replace the file. Hosts \
                for which the configuration has trust are still verified.
                """),
            change: Option("Do not verify the certificates of servers, or verify them again.")),
        TaskField(
            "priority", .priority(\.task.priority), key: .ofAll,
            option: Option("The priority; a ready task with a higher one starts first."),
            change: Option("The priority; a ready task with a higher one starts first.")),
        TaskField(
            "now", .now(\.task.priority), filling: .never, key: .ofAll,
            option: Option(
                """
                Start before all others, a few at a time even if all slots are taken; short for --priority now.
                """)),
        TaskField(
            "limit", .rate(\.details.limit), key: .ofAll,
            option: Option("The maximum rate in bytes per second: 500K, 2M, 1.5G.", value: "rate"),
            change: Option("The maximum rate in bytes per second: 500K, 2M, 1.5G; or none.", value: "rate"),
            aria2: .composed(["max-download-limit"]), check: .limit),
        TaskField(
            "connectTimeout", .span(\.details.connectTimeout), word: "connect-timeout", key: .ofAll,
            option: Option(
                "The time for connecting to a server: 500ms, 30s, 10m. Without it the configuration applies.",
                value: "time"),
            change: Option("The time for connecting; none returns to the configuration.", value: "time"),
            check: .connectTimeout),
        TaskField(
            "stallTimeout", .span(\.details.stallTimeout), word: "stall-timeout", key: .ofAll,
            option: Option(
                "The time without a byte after which an attempt ends: 30s, 10m. Without it the configuration applies.",
                value: "time"),
            change: Option("The time without a byte; none returns to the configuration.", value: "time"),
            check: .stallTimeout),
        TaskField(
            "maxAttempts", .count(\.details.maxAttempts, in: TaskSpecification.Limit.attempts), word: "max-attempts",
            key: .ofAll,
            option: Option(
                """
                The attempts in a row without progress after which the task fails: 1 to 1000000. Without it the \
                configuration applies.
                """, value: "n"),
            change: Option("The attempts without progress; none returns to the configuration.", value: "n"),
            check: .maxAttempts),
        TaskField(
            "startAt", .time(\.details.startAt, text: \.details.startAtText), word: "start-at",
            filling: .together(.start), key: .ofAll,
            option: Option(
                "Start at this time: 2030-01-31T22:00, 2030-01-31 or 22:00 in local time, 2030-01-31T22:00Z, or +2h.",
                value: "time"),
            change: Option(
                "Start at this time: 2030-01-31T22:00, 22:00 in local time, +2h; or none.", value: "time"),
            check: .startAt),
        TaskField(
            "startAtText", .text(stored: \.details.startAtText), word: "start-at", filling: .together(.start),
            check: .startAtText),
        TaskField(
            "afterTask", .task(\.details.afterTask), word: "after-task", key: .ofAll,
            option: Option("Start after this task has completed.", value: "id"),
            change: Option("Start after this task has completed; none removes it.", value: "id")),
        TaskField(
            "batch", .text(\.task.batch, "a name"),
            option: Option("The name of the batch, a group of tasks.", value: "name"),
            change: Option("The name of the batch to which the task moves; none takes it out.", value: "name"),
            check: .text(limit: TaskSpecification.Limit.nameLength, mayBeEmpty: false)),
        TaskField(
            "key", .text(\.task.key, "a name"), filling: .never, key: .ofOneEntry,
            option: Option("Your own name for the task; a second task with the same key is not added.", value: "key"),
            aria2: .composed(["gid"]),
            check: .text(limit: TaskSpecification.Limit.nameLength, mayBeEmpty: false)),
        TaskField(
            "paused", .flag(\.details.paused), key: .ofAll, option: Option("Add the task without starting it."),
            aria2: .option("pause")),
    ]

    /// The fields that the daemon adds. They are stored with the secrets and are not part of a task's JSON.
    static let ofDaemon: [TaskField] = [
        TaskField(
            "groups", .list(\.details.groups, expected: "an array of numbers"), secrecy: .value, filling: .never),
        TaskField("passedSource", .text(stored: \.details.passedSource), secrecy: .value, filling: .never),
    ]
}
