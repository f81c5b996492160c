import TaskFiles
import TaskModel
import Testing

@Suite("Configuration")
struct ConfigurationTests {
    @Test(
        "a file that says nothing gives every default",
        arguments: ["", "\n", "# nothing\n", "---\n", "{}", "downloads:\nlimits:\n  # active-tasks: 3\n", "\u{FEFF}"])
    func empty(text: String) throws {
        #expect(try Configuration(parsing: text, file: "f") == Configuration())
    }

    @Test("the defaults are those of the contract")
    func defaults() {
        let configuration = Configuration()
        #expect(configuration.downloads.directory == nil)
        #expect(configuration.downloads.roots == nil)
        #expect(configuration.downloads.onConflict == .rename)
        #expect(configuration.uploads.roots == [])
        #expect(configuration.limits.activeTasks == 16)
        #expect(configuration.limits.connectionsPerTask == .auto)
        #expect(configuration.limits.connectionsPerHost == 16)
        #expect(configuration.limits.tasksPerOwner == 1_000_000 && configuration.limits.bytesPerOwner == nil)
        #expect(configuration.limits.recordsPerOwner == 1_073_741_824)
        #expect(configuration.retry.attempts == 10)
        #expect(configuration.retry.baseDelay == 1_000)
        #expect(configuration.retry.maxDelay == 600_000)
        #expect(configuration.timeouts.connect == 30_000)
        #expect(configuration.timeouts.stall == 60_000)
        #expect(configuration.disk.minFree == 268_435_456)
        #expect(configuration.disk.maxSize == nil)
        #expect(configuration.control.mode == nil && configuration.control.group == nil)
        #expect(configuration.log.level == .info)
    }

    @Test("every supported key has its effect", arguments: ["\n", "\r\n"])
    func everyKey(lineEnd: String) throws {
        let lines = [
            "downloads: {directory: /srv/d, roots: [/srv/d, '/srv/e f'], on-conflict: skip}",
            "uploads:", "  roots:", "    - /srv/u",
            "limits: {active-tasks: 3, connections-per-task: 4, connections-per-host: 5, tasks-per-owner: 6,",
            "  bytes-per-owner: 2G, records-per-owner: 3M}",
            "retry: {attempts: 7, base-delay: 500ms, max-delay: 6h}",
            "timeouts: {connect: 1.5s, stall: 2m}",
            "disk: {min-free: 0, max-size: 1.5G}",
            "tls: {ca-file: /etc/ca.pem}",
            "network: {proxy: 'socks5h://[::1]:1080', deny: [127.0.0.0/8, '::1', 10.1.2.3],",
            "  exempt: administrators}",
            "hosts:", "  Mirror.Example.org.: {http-version: 2, connections: 3}",
            "  '*.example.org': {http-version: auto}",
            "  \"[::1]:8080\": {http-version: 1.1}", "  localhost:443:", "    http-version: '3'", "  h: {}",
            "control: {socket: /run/x.sock, mode: 0640, group: dld, admin-group: 27}",
            "metrics: {textfile: /var/lib/m/dld.prom}",
            "log: {level: debug}",
        ]
        var expected = Configuration()
        expected.downloads.directory = "/srv/d"
        expected.downloads.roots = ["/srv/d", "/srv/e f"]
        expected.downloads.onConflict = .skip
        expected.uploads.roots = ["/srv/u"]
        expected.limits.activeTasks = 3
        expected.limits.connectionsPerTask = .exactly(4)
        expected.limits.connectionsPerHost = 5
        expected.limits.tasksPerOwner = 6
        expected.limits.bytesPerOwner = 2_147_483_648
        expected.limits.recordsPerOwner = 3_145_728
        expected.retry.attempts = 7
        expected.retry.baseDelay = 500
        expected.retry.maxDelay = 21_600_000
        expected.timeouts.connect = 1_500
        expected.timeouts.stall = 120_000
        expected.disk.minFree = 0
        expected.disk.maxSize = 1_610_612_736
        expected.tls.caFile = "/etc/ca.pem"
        expected.network.proxy = "socks5h://[::1]:1080"
        expected.network.deny = [
            .ipv4(0x7F00_0000, prefixLength: 8), .ipv6(1, prefixLength: 128), .ipv4(0x0A01_0203, prefixLength: 32),
        ]
        expected.network.exempt = .administrators
        expected.hosts = [
            "mirror.example.org": .init(connections: 3, httpVersion: .http2),
            "*.example.org": .init(httpVersion: .auto),
            "[::1]:8080": .init(httpVersion: .http1), "localhost:443": .init(httpVersion: .http3), "h": .init(),
        ]
        expected.control.socket = "/run/x.sock"
        expected.control.mode = 0o640
        expected.control.group = "dld"
        expected.control.adminGroup = "27"
        expected.metrics.textfile = "/var/lib/m/dld.prom"
        expected.log.level = .debug
        expected.places = [
            .init(path: "/srv/d", use: .downloadDirectory), .init(path: "/srv/d", use: .downloadRoot),
            .init(path: "/srv/e f", use: .downloadRoot), .init(path: "/srv/u", use: .uploadRoot),
            .init(path: "/etc/ca.pem", use: .certificates), .init(path: "/var/lib/m", use: .metrics),
        ]
        #expect(try Configuration(parsing: lines.joined(separator: lineEnd), file: "f") == expected)
    }

    @Test("each directory is known with its position, for a mistake that only the disk can tell")
    func places() throws {
        let text = "downloads:\n  roots: ['/é', /b]\nwatch:\n  - {directory: /w}\n"
        let places = try Configuration(parsing: text, file: "f").places
        #expect(places.map(\.path) == ["/é", "/b", "/w"])
        #expect(
            places.map { $0.error("is wrong").description } == [
                "f:2:11: is wrong", "f:2:17: is wrong", "f:4:17: is wrong",
            ])
    }

    @Test("a mode may stand in quotes")
    func quotedMode() throws {
        #expect(try Configuration(parsing: "control: {mode: \"0600\"}", file: "f").control.mode == 0o600)
    }

    @Test("a misspelt section is refused with its place and the nearest")
    func misspeltSection() {
        #expect(throws: fault(2, 1, "\"dowloads\" is not a key here; did you mean \"downloads\"?")) {
            try Configuration(parsing: "log: {level: info}\ndowloads:\n  directory: /x\n", file: "f")
        }
    }

    @Test("a misspelt key is refused with its place and the nearest")
    func misspeltKey() throws {
        let error = #expect(throws: FileError.self) {
            try Configuration(parsing: "limits:\r\n  # é\r\n  actve-tasks: 3\r\n", file: "/etc/dld/dld.yaml")
        }
        #expect(
            error?.description
                == "/etc/dld/dld.yaml:3:3: \"actve-tasks\" is not a key here; did you mean \"active-tasks\"?")
    }

    @Test("a text file of metrics is a file with an absolute path, whose directory is a place")
    func metrics() throws {
        let configuration = try Configuration(parsing: "metrics:\n  textfile: /m.prom\n", file: "f")
        #expect(
            configuration.metrics.textfile == "/m.prom" && configuration.places == [.init(path: "/", use: .metrics)])
        #expect(
            configuration.places.first?.error("is wrong").description == "f:2:13: is wrong")
        for (path, fault) in [
            ("m.prom", "is a relative path"),
            ("/var/m/", "names a directory; name a file in it, such as /var/m/dld.prom"),
        ] {
            let error = #expect(throws: FileError.self) {
                try Configuration(parsing: "metrics: {textfile: \(path)}", file: "f")
            }
            #expect(error?.message.contains(fault) == true, "\(String(describing: error))")
        }
    }

    @Test("requests per second may be a decimal, and a URL's scheme stands for its port")
    func requestsPerSecond() throws {
        let text = """
            hosts:
              https://Example.org: {requests-per-second: 0.5}
              http://a.example: {requests-per-second: 20}
              ftp://b.example:2121: {requests-per-second: 10000}
              '*.example.net': {requests-per-second: 0.0001}
            """
        let hosts = try Configuration(parsing: text, file: "f").hosts
        #expect(
            hosts.mapValues(\.requestsPerSecond) == [
                "example.org:443": 0.5, "a.example:80": 20, "b.example:2121": 10_000, "*.example.net": 0.0001,
            ])
    }

    @Test("F81: a host has times of its own, each as the section `timeouts` has it")
    func timeouts() throws {
        let text = """
            hosts:
              slow.example: {timeouts: {connect: 2m, stall: 7d}}
              '*.example.net': {timeouts: {stall: 500ms}}
            """
        let hosts = try Configuration(parsing: text, file: "f").hosts
        #expect(hosts["slow.example"]?.connectTimeout == 120_000 && hosts["slow.example"]?.stallTimeout == 604_800_000)
        #expect(hosts["*.example.net"]?.connectTimeout == nil && hosts["*.example.net"]?.stallTimeout == 500)
    }

    @Test(
        "F81: other times of a host are refused by name",
        arguments: [
            ("{stall: 0s}", "stall"), ("{connect: 8d}", "connect"), ("{connect: soon}", "connect"),
            ("{conect: 1s}", "conect"), ("30s", "timeouts"),
        ])
    func wrongTimeouts(value: String, word: String) {
        let error = #expect(throws: FileError.self) {
            try Configuration(parsing: "hosts: {h: {timeouts: \(value)}}", file: "f")
        }
        #expect(error?.message.contains(word) == true, "\(String(describing: error))")
    }

    @Test(
        "other values and patterns are refused by name",
        arguments: ["0", "-1", "0.00001", "10001", "1e3", "1.2.3", ".", "x", "nan", "inf", "''", "[1]"])
    func wrongRequestsPerSecond(value: String) {
        let error = #expect(throws: FileError.self) {
            try Configuration(parsing: "hosts: {h: {requests-per-second: \(value)}}", file: "f")
        }
        #expect(error?.message.contains("requests-per-second") == true, "\(String(describing: error))")
    }

    @Test(
        "a scheme alone, a path or a wildcard with a scheme is no host",
        arguments: [
            "https://", "https://a/", "https://*.a", "https://a:", "gopher://a", "://a", "https://u@a",
            "[fe80::1%25eth0]:80", "http://[fe80::1%25eth0]",
        ])
    func wrongPattern(pattern: String) {
        let error = #expect(throws: FileError.self) {
            try Configuration(parsing: "hosts: {'\(pattern)': {connections: 1}}", file: "f")
        }
        #expect(error?.message.contains("is not a host") == true, "\(String(describing: error))")
    }

    @Test("rates, windows, queue files and what is kept are read")
    func queueKeys() throws {
        let text = """
            limits: {download-rate: 2M, upload-rate: 500K}
            hosts: {a.example: {download-rate: 1M, upload-rate: 10K}}
            schedule:
              - {days: mon-fri, from: "09:00", to: "18:00", download-rate: 1M}
              - {days: [sat, sun], from: "22:00", to: "06:00", pause: true}
              - {upload-rate: 5K}
            queues: [/etc/dld/queue.d/*.yaml]
            history: {age: 30d, count: 0}
            events: {age: 12h, count: 500}
            """
        let configuration = try Configuration(parsing: text, file: "f")
        #expect(configuration.limits.downloadRate == 2 << 20 && configuration.limits.uploadRate == 500 << 10)
        #expect(configuration.hosts["a.example"] == .init(downloadRate: 1 << 20, uploadRate: 10 << 10))
        #expect(
            configuration.schedule
                == Schedule([
                    ScheduleWindow(days: Set(0..<5), from: 540, to: 1_080, downloadRate: 1 << 20),
                    ScheduleWindow(days: [5, 6], from: 1_320, to: 360, pauses: true),
                    ScheduleWindow(uploadRate: 5 << 10),
                ]))
        #expect(configuration.queues == [QueuePattern(path: "/etc/dld/queue.d/*.yaml")])
        #expect(configuration.history.age == 30 * 86_400_000 && configuration.history.count == 0)
        #expect(configuration.events.age == 43_200_000 && configuration.events.count == 500)
    }

    @Test(
        "windows that make no sense are refused where they stand",
        arguments: [
            ("schedule: {days: mon}", 1, 11), ("schedule:\n  - {days: monn, pause: true}", 2, 12),
            ("schedule:\n  - {from: 9, pause: true}", 2, 12), ("schedule:\n  - {days: mon}", 2, 5),
            ("schedule:\n  - {from: \"09:00\", to: \"09:00\", pause: true}", 2, 25),
            ("schedule:\n  - {from: \"24:00\", pause: true}", 2, 12),
            ("schedule:\n  - {pauses: true}", 2, 6), ("queues: [a.yaml]", 1, 10), ("history: {age: 0s}", 1, 16),
            ("limits: {download-rate: 0}", 1, 25), ("events: {count: -1}", 1, 17),
        ])
    func wrongWindows(text: String, line: Int, column: Int) {
        let error = #expect(throws: FileError.self) { try Configuration(parsing: text, file: "f") }
        #expect((error?.line, error?.column) == (line, column), "\(error?.description ?? "")")
    }

    @Test("a pattern of queue files may prune")
    func pruningPatterns() throws {
        let text = "queues: [/a.yaml, {files: /b.yaml, prune: true}, {files: /c.yaml}]"
        let expected = [
            QueuePattern(path: "/a.yaml"), QueuePattern(path: "/b.yaml", prune: true), .init(path: "/c.yaml"),
        ]
        #expect(try Configuration(parsing: text, file: "f").queues == expected)
        for wrong in ["queues: [{prune: true}]", "queues: [{files: a}]", "queues: [{files: /a, prunes: true}]"] {
            #expect(throws: FileError.self) { try Configuration(parsing: wrong, file: "f") }
        }
    }

    @Test("a key that stands twice is refused at the second")
    func duplicates() {
        #expect(throws: fault(3, 1, "\"log\" is given twice; it is already at line 1")) {
            try Configuration(parsing: "log: {}\ntls: {}\nlog: {}\nlog: {}\n", file: "f")
        }
        #expect(throws: fault(3, 3, "\"attempts\" is given twice; it is already at line 2")) {
            try Configuration(parsing: "retry:\n  attempts: 1\n  \"attempts\": 2\n", file: "f")
        }
        #expect(throws: fault(2, 1, "\"log\" is given twice")) {
            try Configuration(parsing: "log: {}\n!x log: {}", file: "f")
        }
    }

    @Test(
        "a value of another type or out of bounds is refused where it stands, with what would be right",
        arguments: [
            ("[a]", 1, "the file must be a mapping of sections"),
            ("hello", 1, "the file must be a mapping of sections"),
            ("limits: 3", 9, "\"limits\" must be a mapping"),
            ("limits: {active-tasks: 0}", 24, "a whole number from 1 to 10000"),
            ("limits: {active-tasks: 10001}", 24, "a whole number from 1 to 10000"),
            ("limits: {active-tasks: 99999999999999999999}", 24, "a whole number"),
            ("limits: {active-tasks: -1}", 24, "a whole number"),
            ("limits: {active-tasks: 1.5}", 24, "a whole number"),
            ("limits: {active-tasks: ''}", 24, "a whole number"),
            ("limits: {active-tasks: many}", 24, "a whole number"),
            ("limits: {active-tasks: [1]}", 24, "a whole number"),
            ("limits: {active-tasks: ~}", 24, "has no value"),
            ("limits: {connections-per-task: 17}", 32, "auto or a whole number from 1 to 16"),
            ("limits: {connections-per-host: 0}", 32, "a whole number from 1 to 10000"),
            ("retry: {attempts: 1000001}", 19, "a whole number from 1 to 1000000"),
            ("retry: {base-delay: 0s}", 21, "a time above 0 and up to 7d"),
            ("retry: {max-delay: 8d}", 20, "a time above 0 and up to 7d"),
            ("retry: {max-delay: 500ms}", 20, "must not be shorter than \"base-delay\""),
            ("retry: {base-delay: 11m}", 21, "must not be longer than \"max-delay\""),
            ("timeouts: {stall: 30}", 19, "a time above 0"),
            ("disk: {min-free: lots}", 18, "a size of 0 bytes or more"),
            ("disk: {max-size: 0}", 18, "a size of 1 bytes or more"),
            ("downloads: {directory: files}", 24, "give an absolute path"),
            ("downloads: {directory: ~/files}", 24, "give an absolute path"),
            ("downloads: {directory: /a/../b}", 24, "must not contain a .. component"),
            ("downloads: {roots: [/a, b]}", 25, "give an absolute path"),
            ("downloads: {roots: /a}", 20, "a list of absolute paths"),
            ("downloads: {on-conflict: replace}", 26, "one of rename, overwrite, skip, fail"),
            ("uploads: {roots: [./x]}", 19, "give an absolute path"),
            ("tls: {ca-file: ca.pem}", 16, "give an absolute path"),
            ("network: {proxy: 'proxy:3128'}", 18, "must begin with one of"),
            ("network: {deny: 10.0.0.0/8}", 17, "\"deny\" must be a list of networks"),
            ("network: {deny: [10.0.0.0/8, 10.0.0.0/33]}", 30, "\"deny\": \"10.0.0.0/33\" must end in a prefix length"),
            ("network: {deny: [localhost]}", 18, "\"deny\": \"localhost\" does not begin with an IP address"),
            ("network: {deny: [~]}", 18, "has no value"),
            ("network: {exempt: root}", 19, "\"exempt\" must be one of none, administrators"),
            ("network: {exempt: [administrators]}", 19, "\"exempt\" must be one of none, administrators"),
            ("hosts: [h]", 8, "\"hosts\" must be a mapping of hosts"),
            ("hosts: {h: 2}", 12, "\"h\" must be a mapping"),
            ("hosts: {h: {http-version: 1}}", 27, "one of 1.1, 2, 3, auto"),
            ("hosts: {h: {http-version: 2.0}}", 27, "one of 1.1, 2, 3, auto"),
            ("hosts: {h: {http-version: ~}}", 27, "has no value"),
            ("hosts: {h: {connections: 0}}", 26, "a whole number from 1 to 10000"),
            ("hosts: {h: {conections: 1}}", 13, "did you mean \"connections\"?"),
            ("hosts: {h: {}, H.: {}}", 16, "\"H.\" is given twice: \"h\" is already present"),
            ("hosts: {h: {}, h: {}}", 16, "\"h\" is given twice"),
            ("hosts: {'http://h/': {}}", 9, "is not a host; write a name such as example.org"),
            ("hosts: {'*': {}}", 9, "is not a host"), ("hosts: {'*.': {}}", 9, "is not a host"),
            ("hosts: {'a.*': {}}", 9, "is not a host"), ("hosts: {'*.h:1': {}}", 9, "is not a host"),
            ("hosts: {'h:': {}}", 9, "is not a host"), ("hosts: {'h:0': {}}", 9, "is not a host"),
            ("hosts: {'h/a': {}}", 9, "is not a host"), ("hosts: {'u@h': {}}", 9, "is not a host"),
            ("hosts: {'::1': {}}", 9, "is not a host"), ("hosts: {'*.[::1]': {}}", 9, "is not a host"),
            ("hosts: {'': {}}", 9, "is not a host"), ("hosts: {[a]: {}}", 9, "a key must be a word"),
            ("hosts: {*.h: {}}", 10, "must be in quotes"),
            ("control: {socket: dld.sock}", 19, "give an absolute path"),
            ("control: {socket: /\(String(repeating: "x", count: 107))}", 19, "longer than 107 bytes"),
            ("control: {mode: 660}", 17, "octal with a leading 0"),
            ("control: {mode: 0680}", 17, "octal with a leading 0"),
            ("control: {mode: 01777}", 17, "octal with a leading 0"),
            ("control: {group: 'a b'}", 18, "a group's name or number"),
            ("log: {level: verbose}", 14, "one of trace, debug, info"),
            ("é: 1", 1, "\"é\" is not a key here"),
            ("'é': {}", 1, "\"é\" is not a key here"),
        ])
    func wrongValues(text: String, column: Int, message: String) {
        let error = #expect(throws: FileError.self) { try Configuration(parsing: text, file: "f") }
        #expect(error?.line == 1)
        #expect(error?.column == column)
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test("all faults are told, in the order of the file")
    func allFaults() {
        let error = #expect(throws: FileError.self) {
            try Configuration(parsing: "bogus: 1\nretry:\n  max-delay: x\n  attempts: y\n", file: "f")
        }
        #expect(error?.lines.map { String($0.prefix { $0 != " " }) } == ["f:1:1:", "f:3:14:", "f:4:13:"])
        let delay = "\"max-delay\" must be a time above 0 and up to 7d, such as 500ms, 30s or 10m"
        #expect(error?.others.first?.message == delay)
    }
}
