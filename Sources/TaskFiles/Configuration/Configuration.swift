package import TaskModel

/// A pattern of `queues`.
package struct QueuePattern: Sendable, Equatable {
    /// The absolute path, a pattern as of glob(7).
    package var path: String
    /// Whether the files prune their batches.
    package var prune: Bool

    package init(path: String, prune: Bool = false) {
        self.path = path
        self.prune = prune
    }
}

/// The contents of the daemon's configuration file, with defaults for omitted keys.
///
/// `nil` stands for a default that depends on the daemon's environment.
package struct Configuration: Sendable, Equatable {
    package var downloads = Downloads()
    package var uploads = Uploads()
    package var limits = Limits()
    package var retry = Retry()
    package var timeouts = Timeouts()
    package var disk = Disk()
    package var tls = TLS()
    package var network = Network()
    /// Settings by host pattern in lower case: `name`, `name:port`, or `*.name` for the names beneath it.
    package var hosts: [String: Host] = [:]
    /// Windows of the week with their own rules; of overlapping windows the first takes precedence.
    package var schedule = Schedule()
    /// Absolute patterns of queue files (glob(7)), applied at the start and at each reload.
    package var queues: [QueuePattern] = []
    package var history = History()
    package var events = Events()
    /// The watched directories; no two entries have the same directory.
    package var watch: [Watch] = []
    /// The receivers of events by HTTP; no two entries have the same URL and batch.
    package var notify: [Webhook] = []
    package var control = Control()
    package var metrics = Metrics()
    package var log = Log()

    /// The directories and the certificate file that the configuration names, in the file's order.
    package var places: [Place] = []
    package var positions = Positions()

    /// Creates a configuration with all defaults.
    package init() {}

    /// A path that the configuration file names, with its position in the file.
    package struct Place: Sendable, Equatable {
        package enum Use: Sendable {
            case downloadDirectory, downloadRoot, uploadRoot, watch
            /// A file to read, not a directory.
            case certificates
            /// The directory of the text file of metrics.
            case metrics
        }

        /// The absolute path.
        package var path: String
        package var use: Use
        let file: String
        let position: Position

        init(path: String, use: Use, file: String, position: Position) {
            self.path = path
            self.use = use
            self.file = file
            self.position = position
        }

        /// Creates a place at the beginning of a file without a name.
        package init(path: String, use: Use) {
            self.init(path: path, use: use, file: "", position: Position())
        }

        /// Returns an error about the place, located at its position in the file.
        package func error(_ message: String) -> FileError {
            FileError(file: file, at: position, message)
        }

        /// Compares path and use; the position in the file is ignored.
        package static func == (left: Place, right: Place) -> Bool {
            left.path == right.path && left.use == right.use
        }
    }

    /// Positions of keys in the file, for faults that are found after parsing. All instances compare equal, because the
    /// contents of a configuration do not depend on them.
    package struct Positions: Sendable, Equatable {
        private var places: [String: (file: String, position: Position)] = [:]

        mutating func record(_ key: String, _ value: YAMLValue) { places[key] = value.place }

        /// Returns an error about the value of `key`; it has no position if the file does not contain the key.
        package func error(at key: String, _ message: String) -> FileError {
            let place = places[key]
            return FileError(file: place?.file ?? "", at: place?.position ?? Position(), message)
        }

        package static func == (left: Positions, right: Positions) -> Bool { true }
    }

    package struct Downloads: Sendable, Equatable {
        /// The absolute path that is the base of a task's relative `directory`.
        package var directory: String?
        /// Absolute paths; an absolute `directory` of a task must lie beneath one of them. `nil` stands for
        /// ``directory`` alone.
        package var roots: [String]?
        package var onConflict = ConflictPolicy.rename
        /// The layout. The default is ``DownloadLayout/perUser`` for the system daemon and ``DownloadLayout/shared``
        /// for a user's own daemon.
        package var layout: DownloadLayout?
    }

    package struct Uploads: Sendable, Equatable {
        /// Absolute paths; users other than the daemon's own may upload only files beneath them.
        package var roots: [String] = []
    }

    package struct Limits: Sendable, Equatable {
        package var activeTasks = 16
        /// The maximum number of running tasks of one owner; `nil` for no limit.
        package var activeTasksPerOwner: Int?
        package var connectionsPerTask = ConnectionCount.auto
        package var connectionsPerHost = 16
        /// The limit for all downloads together, in bytes per second.
        package var downloadRate: Int64?
        /// The limit for all uploads together, in bytes per second.
        package var uploadRate: Int64?
        package var tasksPerOwner = 1_000_000
        package var tasksPerBatch: Int?
        /// The maximum number of bytes that the part files and files of one owner's tasks may take up.
        package var bytesPerOwner: Int64?
        /// The maximum number of bytes that the records of one owner's tasks may take up in the database.
        package var recordsPerOwner: Int64 = 1 << 30
    }

    package struct Retry: Sendable, Equatable {
        /// The maximum number of attempts without progress, including the first.
        package var attempts = 10
        package var baseDelay: Milliseconds = 1_000
        package var maxDelay: Milliseconds = 600_000
    }

    package struct Timeouts: Sendable, Equatable {
        package var connect: Milliseconds = 30_000
        /// The time in milliseconds without any transferred byte after which a transfer is aborted.
        package var stall: Milliseconds = 60_000
    }

    package struct Disk: Sendable, Equatable {
        /// The number of bytes that downloads leave free on the disk.
        package var minFree: Int64 = 256 << 20
        /// The maximum size of a download in bytes; a larger one fails.
        package var maxSize: Int64?
    }

    package struct TLS: Sendable, Equatable {
        /// The absolute path of a PEM file of trusted certificates; `nil` for the system's.
        package var caFile: String?
    }

    package struct Network: Sendable, Equatable {
        /// The proxy of tasks that have none of their own.
        package var proxy: String?
        /// The servers that are contacted without ``proxy``; `nil` if the configuration names none.
        package var proxyExemptions: [ProxyExemption]?
        /// Networks to which no connection is made.
        package var deny: [NetworkRange] = []
        /// The owners to whom ``deny`` does not apply.
        package var exempt = NetworkExemption.none
    }

    package enum NetworkExemption: String, Sendable, CaseIterable {
        case none
        /// Root and the members of ``Control/adminGroup``.
        case administrators
    }

    /// Settings for one host. If several patterns match, each setting comes from the most specific pattern that has it.
    package struct Host: Sendable, Equatable {
        /// The maximum number of connections, in place of ``Limits/connectionsPerHost``.
        package var connections: Int?
        package var httpVersion: HTTPVersion?
        /// The limit for all data received from the host, in bytes per second.
        package var downloadRate: Int64?
        /// The limit for all data sent to the host, in bytes per second.
        package var uploadRate: Int64?
        /// The maximum number of requests that are sent to the host per second.
        package var requestsPerSecond: Double?
        /// The time in milliseconds for connecting, in place of ``Timeouts/connect``.
        package var connectTimeout: Milliseconds?
        /// The time in milliseconds without a byte, in place of ``Timeouts/stall``.
        package var stallTimeout: Milliseconds?
        /// The credential and the header lines of the requests of ``HostAccess/owners``.
        package var access = HostAccess()
        /// The proxy on the way to the host, in place of ``Network/proxy``; an empty text for none.
        package var proxy: String?
        /// The criteria for the servers of the host; `nil` if the entry says nothing of them.
        package var trust: HostTrust?

        package init(
            connections: Int? = nil, httpVersion: HTTPVersion? = nil, downloadRate: Int64? = nil,
            uploadRate: Int64? = nil, requestsPerSecond: Double? = nil
        ) {
            self.connections = connections
            self.httpVersion = httpVersion
            self.downloadRate = downloadRate
            self.uploadRate = uploadRate
            self.requestsPerSecond = requestsPerSecond
        }
    }

    /// The credential and the header lines that the requests of certain users to a host are sent with.
    package struct HostAccess: Sendable, Equatable {
        /// The scheme of the pattern; `nil` if it has none. Without the scheme of an unencrypted protocol, such requests
        /// are sent with nothing.
        package var scheme: String?
        /// The name of the file with the credential.
        package var credential: String?
        /// The header lines (`Name: value`).
        package var headers: [String] = []
        /// The users; `nil` for administrators, or the user of a user's own daemon.
        package var owners: [HostOwner]?

        package init() {}

        /// Whether there is something to send.
        package var isEmpty: Bool { credential == nil && headers.isEmpty }
    }

    package enum HostOwner: Sendable, Equatable {
        case everyone
        /// A user by name or number.
        case user(String)
        /// The members of a group by name or number.
        case group(String)
    }

    /// The criteria by which the servers of a host are trusted. Without any, those of the daemon apply.
    package struct HostTrust: Sendable, Equatable {
        /// The trusted certificates in PEM.
        package var certificates: String?
        /// The pinned public keys (`sha256//` and base64).
        package var pins: [String] = []

        package init() {}
    }

    /// The retention of ended tasks.
    package struct History: Sendable, Equatable {
        /// The time in milliseconds after its end at which a task is removed.
        package var age: Milliseconds = 90 * 86_400_000
        /// The maximum number of ended tasks to keep; the one that ended first is removed first.
        package var count = 100_000
    }

    /// The retention of the event journal.
    package struct Events: Sendable, Equatable {
        package var age: Milliseconds = 7 * 86_400_000
        package var count = 1_000_000
    }

    package enum HTTPVersion: String, Sendable, CaseIterable {
        case http1 = "1.1"
        case http2 = "2"
        case http3 = "3"
        case auto
    }

    package struct Control: Sendable, Equatable {
        /// The absolute path of the socket.
        package var socket: String?
        /// The socket's permission bits.
        package var mode: UInt32?
        /// The socket's group, by name or number.
        package var group: String?
        /// The group whose members may act on the tasks of all owners.
        package var adminGroup: String?
    }

    package struct Metrics: Sendable, Equatable {
        /// The absolute path of the text file for node_exporter; `nil` for none.
        package var textfile: String?
    }

    package struct Log: Sendable, Equatable {
        package var level = LogLevel.info
    }

    package enum LogLevel: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// The bounds of values.
    package enum Bound {
        package static let activeTasks = 1...10_000
        package static let connectionsPerHost = 1...10_000
        static let requestsPerSecond = 0.0001...10_000.0
        /// The maximum number of `owners` of a host, and of pinned keys.
        package static let owners = 1_000
        static let pins = 32
        /// The maximum number of patterns in ``hosts``.
        package static let hosts = 10_000
        /// The maximum number of directories in ``watch``; each takes a thread and a kernel descriptor.
        package static let watches = 64
        /// The maximum number of receivers in ``notify``.
        package static let webhooks = 32
        package static let tasksPerOwner = 1...1_000_000_000
        /// The maximum number of windows in ``schedule``.
        package static let windows = 1_000
        /// The maximum number of networks in ``Network/deny``; each connection is compared with all of them.
        package static let networks = 1_000
        /// The maximum number of servers in ``Network/proxyExemptions``; each request is compared with all of them.
        package static let proxyExemptions = 1_000
        /// The maximum number of patterns in ``queues``.
        package static let queues = 1_000
        /// The range of `count` in ``history`` and ``events``.
        package static let kept = 0...1_000_000_000
        /// The maximum `age` in ``history`` and ``events``: a hundred years.
        package static let age: Milliseconds = 36_500 * 86_400_000
        package static let attempts = TaskSpecification.Limit.attempts
        /// The maximum of every delay and time-out: seven days.
        package static let span = TaskSpecification.Limit.timeout
        /// The maximum number of bytes in a socket's path; `sun_path` has 108 including the terminating zero (unix(7)).
        package static let socketPath = 107
        /// The maximum number of bytes in a group's name.
        package static let groupName = 255
    }
}
