import TaskFiles
import TaskModel
import Testing

@Suite("Queue files")
struct QueueFileTests {
    @Test("batch, defaults, downloads and uploads make tasks in the file's order")
    func wholeFile() throws {
        let file = try queue(
            """
            batch: nightly
            defaults: {directory: isos, priority: low, method: POST}
            downloads:
              - url: https://example.org/a.iso
                output: a.iso
                priority: high
              - https://example.org/b.iso
            uploads:
              - {file: report.tar, url: https://example.org/in/report.tar, method: PUT}
              - file: /abs/x
                url: https://example.org/x
            """)
        #expect(file.batch == "nightly")
        var a = TaskSpecification(url: "https://example.org/a.iso")
        a.output = "a.iso"
        a.directory = "isos"
        a.priority = .high
        a.batch = "nightly"
        var b = TaskSpecification(url: "https://example.org/b.iso")
        b.directory = "isos"
        b.priority = .low
        b.batch = "nightly"
        var report = TaskSpecification(kind: .upload, url: "https://example.org/in/report.tar")
        report.file = "/base/report.tar"
        report.method = "PUT"
        report.priority = .low
        report.batch = "nightly"
        var x = TaskSpecification(kind: .upload, url: "https://example.org/x")
        x.file = "/abs/x"
        x.method = "POST"
        x.priority = .low
        x.batch = "nightly"
        #expect(
            file.entries == [
                QueueEntry(a, line: 4, column: 5), QueueEntry(b, line: 7, column: 5),
                QueueEntry(report, line: 9, column: 5), QueueEntry(x, line: 10, column: 5),
            ])
    }

    @Test("a start without a zone is local time, as clocks show it on that day")
    func localStart() throws {
        // Daylight saving time from 2024-03-31T01:00:00Z on.
        let file = try QueueFile(
            parsing: "downloads: [{url: http://h/, start-at: 2024-04-01}]", file: "f", baseDirectory: "/",
            now: 1_704_067_200_000, utcOffset: { $0 < 1_711_846_800_000 ? 3_600 : 7_200 }, readFile: reading([:]))
        #expect(file.entries.map(\.specification.startAt) == [1_711_922_400_000])
    }

    @Test("every option of a download has its effect")
    func everyDownloadOption() throws {
        let file = try queue(
            """
            downloads:
            - url: https://example.org/a
              output: b c
              directory: /srv/x
              checksum: md5:d41d8cd98f00b204e9800998ecf8427e
              header: "X-A: b"
              user: anna
              user-agent: me/1
              referer: https://example.org/
              proxy: http://proxy:3128
              priority: high
              max-size: 2M
              start-at: 2030-01-31T22:00:00+01:00
              on-conflict: fail
              no-mtime: true
              key: 17
              paused: true
            """)
        var task = TaskSpecification(url: "https://example.org/a")
        task.output = "b c"
        task.directory = "/srv/x"
        task.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e"
        task.headers = ["X-A: b"]
        task.user = "anna"
        task.userAgent = "me/1"
        task.referer = "https://example.org/"
        task.proxy = "http://proxy:3128"
        task.priority = .high
        task.maxSize = 2_097_152
        task.startAt = 1_896_123_600_000
        task.onConflict = .fail
        task.noMtime = true
        task.key = "17"
        task.paused = true
        #expect(file.entries.map(\.specification) == [task])
    }

    @Test("an upload to a URL that ends in a slash goes there under its own name; a form's URL stays as it is")
    func uploadPlaces() throws {
        let file = try queue(
            """
            uploads:
              - {file: 'a/b c.tar', url: 'https://h/in/'}
              - {file: b.tar, url: 'ftp://h/in/'}
              - {file: b.tar, url: 'https://h/in/', form: {a: b}}
              - {file: b.tar, url: 'https://h/in/?a=b'}
            """)
        #expect(
            file.entries.map(\.specification.url) == [
                "https://h/in/b%20c.tar", "ftp://h/in/b.tar", "https://h/in/", "https://h/in/?a=b",
            ])
    }

    @Test("an upload takes a media type, headers, and a time to start")
    func uploadOptions() throws {
        let file = try queue(
            """
            uploads:
            - {file: a/b, url: 'http://h/', content-type: text/plain, header: ['A: b', 'C: d'], start-at: +2h}
            """)
        let task = try #require(file.entries.first?.specification)
        #expect(task.file == "/base/a/b")
        #expect(task.contentType == "text/plain")
        #expect(task.headers == ["A: b", "C: d"])
        #expect(task.startAt == 1_704_074_400_000)
        #expect(task.startAtText == "+2h")
    }

    // MARK: - Files that entries name

    @Test("a password, headers and certificates come from files beside the queue file or by their absolute paths")
    func namedFiles() throws {
        let file = try queue(
            """
            downloads:
            - url: https://h/a
              user: anna
              password-file: pw
              header: ["A: b", "@../headers", "@/abs/one", "E: f"]
              cacert: certs/ca.pem
            uploads:
            - {url: https://h/b, file: c, user: anna, password-file: /base/pw, header: "@/abs/one",
               cacert: certs/ca.pem}
            """,
            files: [
                "/base/pw": " secret \r\nsecond line\n", "/base/../headers": "B: c\r\n\nC: d\n", "/abs/one": "D: e",
                "/base/certs/ca.pem": "-----BEGIN CERTIFICATE-----\n",
            ])
        let tasks = file.entries.map(\.specification)
        #expect(tasks.map(\.password) == [" secret ", " secret "])
        #expect(tasks.map(\.headers) == [["A: b", "B: c", "C: d", "D: e", "E: f"], ["D: e"]])
        #expect(tasks.map(\.caCertificates) == Array(repeating: "-----BEGIN CERTIFICATE-----\n", count: 2))
    }

    @Test("the default password goes with the default user, and to nobody else")
    func defaultPassword() throws {
        let file = try queue(
            """
            defaults: {user: anna, password-file: pw, header: "@h"}
            downloads:
            - http://h/1
            - {url: http://h/2, user: otto}
            - {url: http://h/3, user: otto, password-file: other}
            - {url: http://h/4, password-file: other, header: "C: d"}
            """,
            files: ["/base/pw": "1", "/base/other": "2", "/base/h": "A: b\n"])
        let tasks = file.entries.map(\.specification)
        #expect(tasks.map(\.user) == ["anna", "otto", "otto", "anna"])
        #expect(tasks.map(\.password) == ["1", nil, "2", "2"])
        #expect(tasks.map(\.headers) == [["A: b"], ["A: b"], ["A: b"], ["C: d"]])
    }

    @Test("a file is read once, however many entries name it")
    func readOnce() throws {
        var paths: [String] = []
        let entries = (1...1000).map { "- {url: 'http://h/\($0)', user: a, password-file: pw, header: '@h'}\n" }
            .joined()
        let file = try queue("downloads:\n" + entries) { (path, _) throws(UnreadableFile) in
            paths.append(path)
            return Array("A: b\n".utf8)
        }
        #expect(file.entries.count == 1000)
        #expect(paths.sorted() == ["/base/h", "/base/pw"])
    }

    @Test(
        "a file that is missing, too long or no text, or says what no task takes, is told where it is named",
        arguments: [
            ("user: a, password-file: none", 53, "\"password-file\": cannot open /base/none"),
            ("cacert: /none", 37, "\"cacert\": cannot open /none"),
            ("header: '@none'", 37, "\"header\": cannot open /base/none"),
            ("header: ['A: b', '@none']", 46, "\"header\": cannot open /base/none"),
            ("user: a, password-file: long", 53, "\"password-file\": /base/long is longer than 65536"),
            ("header: '@long'", 37, "\"header\": /base/long is longer than 1048576"),
            ("cacert: long", 37, "\"cacert\": /base/long is longer than 262145"),
            ("cacert: over", 37, "\"cacert\": is longer than 256 KiB"),
            ("cacert: text", 37, "\"cacert\": contains no certificate in PEM format"),
            ("password-file: text", 44, "\"password-file\": needs a user"),
            ("user: a, password-file: wide", 53, "\"password-file\": is longer than 4096 bytes"),
            ("header: ['A: b', '@two', '@bad', 'C: d']", 54, "\"header\": is not of the form \"Name: value\""),
            ("header: ['@two', 'nonsense']", 46, "\"header\": is not of the form \"Name: value\""),
            ("header: '@'", 37, "\"header\" is empty; give the path of the file to read"),
            ("header: '@-'", 37, "\"header\" names standard input"),
            ("cacert: '-'", 37, "\"cacert\" names standard input"),
            ("cacert: ~/ca.pem", 37, "\"cacert\" begins with ~"),
            ("password-file: [a]", 44, "\"password-file\" must be a path"),
        ])
    func unusableFiles(options: String, column: Int, message: String) {
        let error = #expect(throws: FileError.self) {
            try queue(
                "downloads: [{url: http://h, \(options)}]",
                files: [
                    "/base/text": "text", "/base/two": "X: 1\nY: 2\n", "/base/bad": "Z: 3\nbad\n",
                    "/base/wide": String(repeating: "x", count: 4097),
                    "/base/over": String(repeating: "x", count: 262_145),
                    "/base/long": String(repeating: "x", count: 2 << 20),
                ])
        }
        #expect(error?.column == column)
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }

    @Test("a file that is not UTF-8 is no password")
    func binaryFile() {
        #expect(throws: fault(1, 53, "\"password-file\": /base/pw is not UTF-8 text")) {
            try queue("downloads: [{url: http://h, user: a, password-file: pw}]") { _, _ in [0xFF] }
        }
    }

    @Test("an entry's headers replace the default ones")
    func headerDefaults() throws {
        let file = try queue(
            "defaults: {header: 'A: b', paused: true}\ndownloads: [http://h/1, {url: http://h/2, header: 'C: d'}]")
        #expect(file.entries.map(\.specification.headers) == [["A: b"], ["C: d"]])
        #expect(file.entries.allSatisfy { $0.specification.paused })
    }

    @Test("a file that says nothing asks for nothing", arguments: ["", "downloads:\nuploads: []\n", "batch: x\n"])
    func nothing(text: String) throws {
        #expect(try queue(text).entries.isEmpty)
    }

    @Test("carriage returns before line feeds change nothing")
    func carriageReturns() throws {
        let file = try queue("downloads:\r\n  - http://h/a\r\n  - url: http://h/b\r\n    output: c\r\n")
        #expect(file.entries.map(\.specification.url) == ["http://h/a", "http://h/b"])
        #expect(file.entries.map(\.line) == [2, 3])
    }

    @Test("a misspelt key is refused with its place and the nearest")
    func misspelt() {
        #expect(throws: fault(1, 1, "\"dowloads\" is not a key here; did you mean \"downloads\"?")) {
            try queue("dowloads: [http://h/]")
        }
        #expect(throws: fault(4, 5, "\"chekcsum\" is not a key here; did you mean \"checksum\"?")) {
            try queue("downloads:\n  - http://h/1\n  - url: http://h/2\n    chekcsum: x\n")
        }
    }

    @Test("a task to follow is named by its id", arguments: ["0", "-1", "1.5", "a", "99999999999999999999"])
    func afterTask(wrong: String) throws {
        #expect(
            try queue("downloads:\n- url: http://h/\n  after-task: 7\n").entries.first?.specification.afterTask
                == TaskID(7))
        #expect(throws: fault(3, 15, "\"after-task\" must be a task's id, a whole number from 1")) {
            try queue("downloads:\n- url: http://h/\n  after-task: \(wrong)\n")
        }
    }

    @Test("a form is a mapping, a field or a list of them; a fault of one stands at it")
    func form() throws {
        let text =
            "uploads:\n- {file: a, url: http://h/, form: {token: t=1, number: 7}}\n"
            + "- {file: a, url: http://i/, form: a=b, file-field: image}\n- {file: a, url: http://j/, form: [a=b, c=]}"
        let entries = try queue(text).entries.map(\.specification)
        #expect(entries.map(\.form) == [["token=t=1", "number=7"], ["a=b"], ["a=b", "c="]])
        #expect(entries.map(\.fileField) == [nil, "image", nil])
        #expect(throws: fault(2, 41, "\"form\": is not of the form NAME=VALUE")) {
            try queue("uploads:\n- {file: a, url: http://h/, form: [a=b, c]}")
        }
        #expect(throws: fault(2, 37, "\"method\": must be POST for a form")) {
            try queue("uploads:\n- {file: a, url: http://h/, method: PUT, form: a=b}")
        }
        #expect(throws: fault(2, 3, "\"form\" applies to uploads only")) {
            try queue("downloads:\n- form: a=b\n  url: http://h/")
        }
    }

    @Test("cookies, and fields of a form, are read from the files that are named")
    func cookiesAndFields() throws {
        let text = """
            defaults: {cookies: jar}
            downloads: [http://h/a]
            uploads:
            - {file: a, url: http://h/b, cookies: /other, form: ["a=b", "@fields"]}
            """
        let files = ["/base/jar": "one\ttwo", "/other": "#", "/base/fields": "c=d\r\n\ne=f=g\n"]
        let entries = try queue(text, files: files).entries.map(\.specification)
        #expect(entries.map(\.cookies) == ["one\ttwo", "#"])
        #expect(entries.last?.form == ["a=b", "c=d", "e=f=g"])
        let long = String(repeating: "#", count: 262_145)
        #expect(throws: fault(2, 29, "\"cookies\": must be at most 256 KiB")) {
            try queue("downloads:\n- {url: http://h/, cookies: long}", files: ["/base/long": long])
        }
    }

    @Test("what a file server has no use for is refused where it stands; a default is for those that have a use for it")
    func fileServer() throws {
        let text = """
            defaults: {header: "A: b", user-agent: me, referer: r, cookies: /jar, content-type: a/b, method: POST, \
            form: c=d}
            downloads: [sftp://h/a, {url: ftp://h/b, mirror: http://i/b}, http://h/c]
            uploads: [{file: a, url: sftp://h/d}, {file: a, url: http://h/e}]
            """
        let entries = try queue(text, files: ["/jar": "#"]).entries.map(\.specification)
        #expect(entries.map { $0.headers.isEmpty } == [true, false, false, true, false])
        #expect(entries.map { $0.cookies == nil } == [true, false, false, true, false])
        #expect(entries.map(\.userAgent) == [nil, "me", "me", nil, "me"])
        #expect(entries.map(\.referer) == [nil, "r", "r", nil, "r"])
        #expect(entries.map(\.method) == [nil, nil, nil, nil, "POST"])
        #expect(entries.map(\.contentType) == [nil, nil, nil, nil, "a/b"])
        #expect(entries.map(\.form) == [[], [], [], [], ["c=d"]])
        #expect(throws: fault(2, 44, "\"content-type\": is not supported for sftp")) {
            try queue("uploads:\n- {file: a, url: sftp://h/a, content-type: a/b}")
        }
    }

    @Test("a limit is a rate, of one entry or of all")
    func limit() throws {
        let file = try queue(
            "defaults: {limit: 1M}\ndownloads: [http://h/, {url: http://i/, limit: 500K}]\n"
                + "uploads: [{url: http://j/, file: a, limit: 7}]")
        #expect(file.entries.map(\.specification.limit) == [1 << 20, 500 << 10, 7])
        let message = "\"limit\" must be a rate of at least 1 byte per second, such as 500K, 2M or 1.5G"
        for text in ["0", "fast", "-1"] {
            #expect(throws: fault(3, 10, message)) { try queue("downloads:\n- url: http://h/\n  limit: \(text)\n") }
        }
    }

    @Test("mirrors are one or a list, by either name; a fault of one stands at it")
    func mirrors() throws {
        let text =
            "downloads:\n- {url: http://h/, mirror: http://i/}\n- {url: http://j/, mirrors: [http://k/, ftp://l/]}"
        let file = try queue(text)
        #expect(file.entries.map(\.specification.mirrors) == [["http://i/"], ["http://k/", "ftp://l/"]])
        #expect(throws: fault(4, 5, "\"mirrors\": has no scheme; begin it with https:// or http://")) {
            try queue("downloads:\n- url: http://h/\n  mirrors: [http://i/,\n    nowhere]\n")
        }
        #expect(throws: fault(3, 11, "\"mirror\": has no scheme; begin it with https:// or http://")) {
            try queue("downloads:\n- url: http://h/\n  mirror: nowhere\n")
        }
        #expect(throws: fault(4, 12, "\"mirrors\" and \"mirror\" are the same option; give one of them")) {
            try queue("downloads:\n- url: http://h/\n  mirror: http://i/\n  mirrors: [http://i/]\n")
        }
        #expect(throws: fault(1, 12, "\"mirrors\" applies to a single entry and cannot be a default")) {
            try queue("defaults: {mirrors: [http://h/]}")
        }
        #expect(throws: fault(1, 12, "\"mirror\" applies to downloads only")) {
            try queue("uploads: [{mirror: http://i/, url: http://h/, file: a}]")
        }
    }

    @Test("a list of digests may be a default, and a digest of an entry's own takes its place")
    func checksumURL() throws {
        let file = try queue(
            """
            defaults: {checksum-url: http://h/SHA256SUMS, connections: 4}
            downloads:
              - http://h/a
              - {url: http://h/b, checksum: "md5:d41d8cd98f00b204e9800998ecf8427e", connections: auto}
              - {url: http://h/c, checksum-url: http://h/MD5SUMS}
            uploads:
              - {file: x, url: http://h/x}
            """)
        #expect(
            file.entries.map(\.specification.checksumURL) == ["http://h/SHA256SUMS", nil, "http://h/MD5SUMS", nil])
        #expect(file.entries.map(\.specification.connections) == [.exactly(4), .auto, .exactly(4), nil])
        let both = "\"checksum-url\": cannot be combined with a checksum; give one of them"
        #expect(throws: fault(4, 17, both)) {
            try queue(
                "downloads:\n- url: http://h/\n  checksum: md5:d41d8cd98f00b204e9800998ecf8427e\n"
                    + "  checksum-url: http://h/s\n")
        }
        #expect(throws: fault(1, 25, "\"connections\" must be auto or a whole number from 1 to 16")) {
            try queue("defaults: {connections: 17}\ndownloads: [http://h/]")
        }
    }

    @Test("a Metalink on a server is told by its key, and takes the place of a list of digests for all")
    func metalink() throws {
        let file = try queue(
            """
            defaults: {checksum-url: http://h/SHA256SUMS}
            downloads:
              - {url: http://h/a.meta4, metalink: true, output: a}
              - {url: http://h/b, metalink: false}
            """)
        #expect(file.entries.map(\.specification.metalink) == [true, false])
        #expect(file.entries.map(\.specification.checksumURL) == [nil, "http://h/SHA256SUMS"])
        #expect(file.entries.first?.specification.output == "a")
        let all = try queue("defaults: {metalink: true}\ndownloads: [http://h/a.meta4]\nuploads: []")
        #expect(all.entries.map(\.specification.metalink) == [true])
        let both = "\"checksum-url\": needs the file's URL, which only the Metalink contains; give a checksum"
        #expect(throws: fault(1, 61, both)) {
            try queue("downloads: [{url: http://h/a, metalink: true, checksum-url: http://h/s}]")
        }
        #expect(throws: fault(1, 28, "\"metalink\" applies to downloads only")) {
            try queue("uploads: [{url: http://h/, metalink: true, file: a}]")
        }
        #expect(throws: FileError.self) { try queue("downloads: [{url: http://h/a, metalink: http://h/b}]") }
    }

    @Test("a key that belongs elsewhere is told so")
    func elsewhere() {
        #expect(throws: fault(1, 30, "\"method\" applies to uploads only")) {
            try queue("downloads: [{url: http://h/, method: PUT}]")
        }
        #expect(throws: fault(1, 12, "\"output\" applies to downloads only")) {
            try queue("uploads: [{output: x, url: http://h/, file: a}]")
        }
        #expect(throws: fault(1, 14, "\"batch\" belongs at the top level of the file, where it applies to all entries"))
        {
            try queue("downloads: [{batch: x, url: http://h/}]")
        }
        #expect(throws: fault(1, 12, "\"url\" applies to a single entry and cannot be a default")) {
            try queue("defaults: {url: http://h/}")
        }
    }

    @Test(
        "what no task takes is refused where it stands",
        arguments: [
            ("downloads: http://h/", 12, "\"downloads\" must be a list"),
            ("downloads: [[a]]", 13, "this entry must be a URL or a mapping"),
            ("downloads: [~]", 13, "this entry is empty"),
            ("downloads: [{output: x}]", 13, "this entry has no \"url\""),
            ("downloads: [{url: [x]}]", 19, "\"url\" must be a URL"),
            ("downloads: ['file:///etc/passwd']", 13, "\"url\": the protocol file is not allowed"),
            ("downloads: [example.org/x]", 13, "\"url\": has no scheme"),
            ("downloads: [{output: .., url: 'http://h/'}]", 22, "\"output\": .. names a directory"),
            ("downloads: [{output: /etc/x, url: 'http://h/'}]", 22, "\"output\": is a path"),
            ("downloads: [{output: \"a\\nb\", url: 'http://h/'}]", 22, "\"output\": contains a control character"),
            ("downloads: [{output: '', url: 'http://h/'}]", 22, "\"output\": is empty"),
            ("downloads: [{output: , url: 'http://h/'}]", 22, "\"output\" has no value"),
            ("downloads: [{header: 'A', url: 'http://h/'}]", 22, "\"header\": is not of the form"),
            (
                "downloads: [{header: ['A: b', \"C: d\\r\\nE: f\"], url: 'http://h/'}]", 31,
                "\"header\": contains a control"
            ),
            ("downloads: [{header: {A: b}, url: 'http://h/'}]", 22, "\"header\" must be \"Name: value\""),
            ("downloads: [{checksum: sha256:0, url: 'http://h/'}]", 24, "\"checksum\": a sha-256 digest has 64"),
            (
                "downloads: [{priority: urgent, url: 'http://h/'}]", 24,
                "\"priority\" must be one of low, normal, high, now"
            ),
            ("downloads: [{max-size: big, url: 'http://h/'}]", 24, "\"max-size\" must be a size"),
            ("downloads: [{start-at: soon, url: 'http://h/'}]", 24, "\"start-at\" must be a time"),
            ("downloads: [{paused: 1, url: 'http://h/'}]", 22, "\"paused\" must be true or false"),
            ("downloads: [{user-agent: \"a\\tb\", url: 'http://h/'}]", 26, "\"user-agent\": contains a control"),
            ("{defaults: {directory: ../x}, downloads: ['http://h/']}", 24, "\"directory\": must not contain a .."),
            ("uploads: ['http://h/']", 11, "this entry must be a mapping with a file and a url"),
            ("uploads: [{url: 'http://h/'}]", 11, "this entry has no \"file\""),
            ("uploads: [{file: '', url: 'http://h/'}]", 18, "\"file\" is empty"),
            ("uploads: [{file: ~/a, url: 'http://h/'}]", 18, "\"file\" begins with ~"),
            ("uploads: [{file: a, url: 'scp://h/'}]", 26, "\"url\": the protocol scp is not allowed"),
            ("uploads: [{file: a, url: 'http://h/', method: DELETE}]", 47, "\"method\": must be PUT or POST"),
            ("batch: ''", 8, "\"batch\" is empty"),
            ("batch: [a]", 8, "\"batch\" must be a name"),
            ("- http://h/", 1, "the file must be a mapping with downloads"),
        ])
    func wrongValues(text: String, column: Int, message: String) {
        let error = #expect(throws: FileError.self) { try queue(text) }
        #expect(error?.line == 1)
        #expect(error?.column == column)
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }

    @Test(
        "a fault has the code that it has where the task is added without a file",
        arguments: [
            ("downloads: ['file:///x']", .protocolNotAllowed), ("downloads: [{url: 'file:///x'}]", .protocolNotAllowed),
            ("uploads: [{file: a, url: 'scp://h/'}]", .protocolNotAllowed),
            ("downloads: [{url: 'http://h/', output: ../x}]", .pathNotAllowed),
            ("downloads: [{url: 'http://h/', output: ..}]", .pathNotAllowed),
            ("downloads: [{url: 'http://h/', directory: a/../../b}]", .pathNotAllowed),
            ("{defaults: {directory: ../x}, downloads: ['http://h/']}", .pathNotAllowed),
            ("downloads: [{url: 'http://h/', output: ''}]", .invalid), ("downloads: [example.org]", .invalid),
            ("bogus: 1", .invalid),
        ] as [(String, ErrorCode)])
    func codes(text: String, code: ErrorCode) {
        let error = #expect(throws: FileError.self) { try queue(text) }
        #expect(error?.code == code)
    }

    @Test("a second entry for the same task is refused")
    func sameTask() throws {
        #expect(throws: fault(3, 3, "this entry is the same task as the one at line 2; give it a key of its own")) {
            try queue("downloads:\n- http://h/\n- url: http://h/\n  priority: low\n")
        }
        #expect(throws: fault(3, 3, "this entry is the same task as the one at line 2; give it a key of its own")) {
            try queue("downloads:\n- {url: http://h/1, key: k}\n- {url: http://h/2, key: k}\n")
        }
        let different = try queue(
            """
            downloads: [{url: http://h/}, {url: http://h/, output: a}, {url: http://h/, key: k}]
            uploads: [{url: http://h/, file: a}]
            """)
        #expect(different.entries.count == 4)
    }

    @Test("all faults are told in the order of the file, each entry's once")
    func allFaults() {
        let error = #expect(throws: FileError.self) {
            try queue(
                "uploads:\n- {url: 'http://h/'}\ndownloads:\n- nonsense\n- {ulr: 'http://h/', limit: x}\nbogus: 1\n"
                    + "defaults: {limit: y}\n")
        }
        let places = error?.lines.map { String($0.prefix { $0 != " " }) }
        #expect(places == ["f:2:3:", "f:4:3:", "f:5:4:", "f:5:29:", "f:6:1:", "f:7:19:"], "\(error?.lines ?? [])")
        #expect(error?.line == 2 && error?.lines[2].contains("did you mean \"url\"?") == true)
    }
}
