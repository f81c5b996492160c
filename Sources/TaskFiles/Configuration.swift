import TaskModel

/// What the daemon's configuration file says, with the defaults of what it leaves out.
///
/// Where the default depends on the daemon's surroundings, `nil` stands for it.
package struct Configuration: Sendable, Equatable {
    package var downloads = Downloads()
    package var uploads = Uploads()
    package var limits = Limits()
    package var retry = Retry()
    package var timeouts = Timeouts()
    package var disk = Disk()
    package var tls = TLS()
    package var network = Network()
    /// By name, `name:port`, or `*.name` for the names beneath it; in lower case.
    package var hosts: [String: Host] = [:]
    /// Hours of the week with rules of their own; of those that overlap the first counts.
    package var schedule = Schedule()
    /// Absolute patterns of queue files (glob(7)), applied at the start and with each reload.
    package var queues: [String] = []
    package var history = History()
    package var events = Events()
    /// No two are of one directory.
    package var watch: [Watch] = []
    package var control = Control()
    package var log = Log()

    /// The directories that the file names, and its file of certificates, in its order.
    package var places: [Place] = []
    package var marks = Marks()

    /// Every default.
    package init() {}

    /// A directory that the file names, and where it does.
    package struct Place: Sendable, Equatable {
        package enum Use: Sendable {
            case downloadDirectory, downloadRoot, uploadRoot, watch
            /// A file to read, not a directory.
            case certificates
        }

        /// Absolute.
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

        /// At the beginning of a file without a name.
        package init(path: String, use: Use) {
            self.init(path: path, use: use, file: "", position: Position())
        }

        /// Makes a mistake in the file of what is wrong with the place.
        package func error(_ message: String) -> FileError {
            FileError(file: file, at: position, message)
        }

        /// Places are equal wherever they stand in the file.
        package static func == (left: Place, right: Place) -> Bool {
            left.path == right.path && left.use == right.use
        }
    }

    /// Positions of keys in the file, for mistakes that are found once it has been read. All are equal: what a file says
    /// does not depend on them.
    package struct Marks: Sendable, Equatable {
        private var places: [String: (file: String, position: Position)] = [:]

        mutating func note(_ key: String, _ value: YAMLValue) { places[key] = value.place }

        /// A mistake in the value of `key`; without a place where the file does not have it.
        package func error(at key: String, _ message: String) -> FileError {
            let place = places[key]
            return FileError(file: place?.file ?? "", at: place?.position ?? Position(), message)
        }

        package static func == (left: Marks, right: Marks) -> Bool { true }
    }

    package struct Downloads: Sendable, Equatable {
        /// Absolute; where a relative `directory` of a task begins.
        package var directory: String?
        /// Absolute; an absolute `directory` of a task lies beneath one of them. `nil`: the directory alone.
        package var roots: [String]?
        package var onConflict = ConflictPolicy.rename
        /// `nil`: ``DownloadLayout/perUser`` for the system's daemon, ``DownloadLayout/shared`` for a user's own.
        package var layout: DownloadLayout?
    }

    package struct Uploads: Sendable, Equatable {
        /// Absolute; others than the daemon's own user may upload from beneath these only.
        package var roots: [String] = []
    }

    package struct Limits: Sendable, Equatable {
        package var activeTasks = 16
        package var connectionsPerTask = ConnectionCount.auto
        package var connectionsPerHost = 16
        /// Bytes a second, all downloads together.
        package var downloadRate: Int64?
        /// Bytes a second, all uploads together.
        package var uploadRate: Int64?
        package var tasksPerOwner = 1_000_000
        package var tasksPerBatch: Int?
        /// Bytes that the parts and files of one owner's tasks may take up.
        package var bytesPerOwner: Int64?
        /// Bytes that the records of one owner's tasks may take up in the database.
        package var recordsPerOwner: Int64 = 1 << 30
    }

    package struct Retry: Sendable, Equatable {
        /// Attempts without progress, the first among them.
        package var attempts = 10
        package var baseDelay: Milliseconds = 1_000
        package var maxDelay: Milliseconds = 600_000
    }

    package struct Timeouts: Sendable, Equatable {
        package var connect: Milliseconds = 30_000
        /// A transfer that moves nothing for so long is broken off.
        package var stall: Milliseconds = 60_000
    }

    package struct Disk: Sendable, Equatable {
        /// Bytes that downloads leave free.
        package var minFree: Int64 = 256 << 20
        /// Bytes; a larger download fails.
        package var maxSize: Int64?
    }

    package struct TLS: Sendable, Equatable {
        /// Absolute; certificates to trust, PEM. `nil`: the system's.
        package var caFile: String?
    }

    package struct Network: Sendable, Equatable {
        /// For tasks without a proxy of their own.
        package var proxy: String?
        /// Nothing is connected to what lies in one of them.
        package var deny: [NetworkRange] = []
    }

    /// What holds for one host alone; of several patterns that fit, the most specific one that says something.
    package struct Host: Sendable, Equatable {
        /// In place of ``Limits/connectionsPerHost``.
        package var connections: Int?
        package var httpVersion: HTTPVersion?
        /// Bytes a second of all that comes from the host.
        package var downloadRate: Int64?
        /// Bytes a second of all that goes to the host.
        package var uploadRate: Int64?

        package init(
            connections: Int? = nil, httpVersion: HTTPVersion? = nil, downloadRate: Int64? = nil,
            uploadRate: Int64? = nil
        ) {
            self.connections = connections
            self.httpVersion = httpVersion
            self.downloadRate = downloadRate
            self.uploadRate = uploadRate
        }
    }

    /// Tasks that ended and are kept.
    package struct History: Sendable, Equatable {
        /// Milliseconds after its end at which a task goes.
        package var age: Milliseconds = 90 * 86_400_000
        /// As many are kept at most; the oldest end goes first.
        package var count = 100_000
    }

    /// The journal of what happened.
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
        /// Absolute.
        package var socket: String?
        /// The socket's permission bits.
        package var mode: UInt32?
        /// The socket's group, by name or number.
        package var group: String?
        /// Members may act on everyone's tasks.
        package var adminGroup: String?
    }

    package struct Log: Sendable, Equatable {
        package var level = LogLevel.info
    }

    package enum LogLevel: String, Sendable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// What a value may be at most and at least.
    package enum Bound {
        package static let activeTasks = 1...10_000
        package static let connectionsPerHost = 1...10_000
        /// Patterns of ``hosts``.
        package static let hosts = 10_000
        /// Directories of ``watch``: each has a thread and a descriptor of the kernel's.
        package static let watches = 64
        package static let tasksPerOwner = 1...1_000_000_000
        /// Windows of ``schedule``.
        package static let windows = 1_000
        /// Networks of ``Network/deny``: each connection is held against all of them.
        package static let networks = 1_000
        /// Patterns of ``queues``.
        package static let queues = 1_000
        /// Of ``history`` and ``events``.
        package static let kept = 0...1_000_000_000
        /// Of ``history`` and ``events``: a hundred years.
        package static let age: Milliseconds = 36_500 * 86_400_000
        package static let attempts = 1...1_000_000
        /// Of every delay and timeout: seven days.
        package static let span: Milliseconds = 7 * 86_400_000
        /// Bytes in a socket's path: `sun_path` has 108 with its end (unix(7)).
        package static let socketPath = 107
        /// Bytes in a group's name.
        package static let groupName = 255
    }
}
