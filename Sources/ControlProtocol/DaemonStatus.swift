public import TaskModel

/// The result of `daemon.status`.
public struct DaemonStatus: Codable, Sendable, Equatable {
    /// The value of ``socket`` for a socket that was passed by systemd.
    public static let inheritedSocket = "from systemd"

    public var version: String
    public var pid: Int32
    /// The time since the daemon's start in milliseconds.
    public var uptime: Milliseconds
    /// The socket's path, or ``inheritedSocket``.
    public var socket: String
    public var stateDirectory: String
    /// The path of the configuration file in force; `null` if there is none, so that the defaults apply, or from a daemon
    /// that does not report it.
    public var configurationFile: String?
    public var downloadDirectory: String
    public var libcurl: String
    /// The number of tasks by state; every state is present.
    public var tasks: [String: Int]
    /// The throughput of all downloads together, in bytes per second.
    public var downloadRate: Int64
    public var uploadRate: Int64
    /// The sequence number of the newest event.
    public var lastEvent: Int64
    /// The number of transfers since the daemon's start that stalled although they had work to do, so that the engine's
    /// watchdog had to restart them. Any value other than 0 indicates a defect.
    public var internalFaults: Int
    /// The pause imposed by a window of the schedule; `null` if there is none.
    public var schedulePause: SchedulePause?
    /// The causes for which tasks wait; `null` from a daemon that does not report them.
    public var waiting: Waiting?
    /// The bytes that downloads take up on disk; `null` from a daemon that does not report them.
    public var storage: Storage?
    /// Problems that need an administrator, one line each: unusable directories, a rejected configuration, dropped
    /// files that cannot be moved. Reported to administrators only; empty for other users, and `null` from a daemon
    /// that does not report them.
    public var problems: [String]?
    /// The receivers of events by HTTP. Reported to administrators only; empty for other users, and `null` from a daemon
    /// that does not report them.
    public var webhooks: [Webhook]?
    /// The limits in force; `null` from a daemon that does not report them.
    public var limits: Limits?
    /// The disks of the directories for downloads; `null` from a daemon that does not report them.
    public var disks: [Disk]?
    /// The hosts on hold, at most a hundred: for administrators all of them, for other users those of their queued
    /// tasks. `null` from a daemon that does not report them.
    public var hosts: [HeldHost]?
    /// The metrics; `null` unless an administrator asked for them.
    public var metrics: Metrics?

    /// A pause of all transfers imposed by a window of the schedule.
    public struct SchedulePause: Codable, Sendable, Equatable {
        /// The end of the window; `null` if it has none.
        public var until: Milliseconds?

        public init(until: Milliseconds?) { self.until = until }

        private enum CodingKeys: String, CodingKey { case until }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(until, forKey: .until)
        }
    }

    /// The disk usage by part files, and by finished files that a task still refers to.
    public struct Storage: Codable, Sendable, Equatable {
        /// The maximum number of bytes that the downloads of one owner may take up; `null` for no limit.
        public var limit: Int64?
        /// The caller's usage only; for administrators, the hundred owners with the highest usage.
        public var owners: [Owner]

        public struct Owner: Codable, Sendable, Equatable {
            /// The owner's uid.
            public var owner: UInt32
            /// The bytes in use, including bytes reserved in advance for running downloads.
            public var bytes: Int64

            public init(owner: UInt32, bytes: Int64) {
                self.owner = owner
                self.bytes = bytes
            }
        }

        public init(limit: Int64?, owners: [Owner]) {
            self.limit = limit
            self.owners = owners
        }

        private enum CodingKeys: String, CodingKey { case limit, owners }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(limit, forKey: .limit)
            try container.encode(owners, forKey: .owners)
        }
    }

    /// The most frequent causes for which tasks wait.
    public struct Waiting: Codable, Sendable, Equatable {
        /// The number of waiting tasks that were examined. If it is less than the number of waiting tasks, the causes
        /// cover only the examined ones.
        public var counted: Int
        /// The causes, most frequent first.
        public var causes: [Cause]

        public init(counted: Int, causes: [Cause]) {
            self.counted = counted
            self.causes = causes
        }
    }

    /// A group of tasks that wait for the same reason and failed with the same error code.
    public struct Cause: Codable, Sendable, Equatable {
        /// The tasks' `reason`.
        public var reason: String
        /// The code of the tasks' last error; `null` if they had none.
        public var code: ErrorCode?
        /// The message of the tasks' last error, if it is the same for all of them.
        public var message: String?
        public var tasks: Int
        /// The earliest time at which one of the tasks is retried.
        public var notBefore: Milliseconds?

        public init(reason: String, code: ErrorCode?, message: String?, tasks: Int, notBefore: Milliseconds?) {
            self.reason = reason
            self.code = code
            self.message = message
            self.tasks = tasks
            self.notBefore = notBefore
        }

        private enum CodingKeys: String, CodingKey { case reason, code, message, tasks, notBefore }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(reason, forKey: .reason)
            try container.encode(code, forKey: .code)
            try container.encode(message, forKey: .message)
            try container.encode(tasks, forKey: .tasks)
            try container.encode(notBefore, forKey: .notBefore)
        }
    }

    public init(
        version: String, pid: Int32, uptime: Milliseconds, socket: String, stateDirectory: String,
        downloadDirectory: String, libcurl: String, tasks: [String: Int], downloadRate: Int64, uploadRate: Int64,
        lastEvent: Int64, internalFaults: Int = 0, schedulePause: SchedulePause? = nil, waiting: Waiting? = nil,
        storage: Storage? = nil, problems: [String]? = nil, webhooks: [Webhook]? = nil,
        configurationFile: String? = nil, limits: Limits? = nil, disks: [Disk]? = nil, hosts: [HeldHost]? = nil,
        metrics: Metrics? = nil
    ) {
        self.version = version
        self.pid = pid
        self.uptime = uptime
        self.socket = socket
        self.stateDirectory = stateDirectory
        self.configurationFile = configurationFile
        self.downloadDirectory = downloadDirectory
        self.libcurl = libcurl
        self.tasks = tasks
        self.downloadRate = downloadRate
        self.uploadRate = uploadRate
        self.lastEvent = lastEvent
        self.internalFaults = internalFaults
        self.schedulePause = schedulePause
        self.waiting = waiting
        self.storage = storage
        self.problems = problems
        self.webhooks = webhooks
        self.limits = limits
        self.disks = disks
        self.hosts = hosts
        self.metrics = metrics
    }

    private enum CodingKeys: String, CodingKey {
        case version, pid, uptime, socket, stateDirectory, downloadDirectory, libcurl, tasks, downloadRate, uploadRate
        case lastEvent, internalFaults, schedulePause, waiting, storage, problems, webhooks, limits, disks, hosts
        case metrics, configurationFile
    }

    public func encode(to encoder: any Encoder) throws {
        // `encode` instead of `encodeIfPresent`: every field is present in the output, with `null` for `nil`.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(version, forKey: .version)
        try container.encode(pid, forKey: .pid)
        try container.encode(uptime, forKey: .uptime)
        try container.encode(socket, forKey: .socket)
        try container.encode(stateDirectory, forKey: .stateDirectory)
        try container.encode(configurationFile, forKey: .configurationFile)
        try container.encode(downloadDirectory, forKey: .downloadDirectory)
        try container.encode(libcurl, forKey: .libcurl)
        try container.encode(tasks, forKey: .tasks)
        try container.encode(downloadRate, forKey: .downloadRate)
        try container.encode(uploadRate, forKey: .uploadRate)
        try container.encode(lastEvent, forKey: .lastEvent)
        try container.encode(internalFaults, forKey: .internalFaults)
        try container.encode(schedulePause, forKey: .schedulePause)
        try container.encode(waiting, forKey: .waiting)
        try container.encode(storage, forKey: .storage)
        try container.encode(problems, forKey: .problems)
        try container.encode(webhooks, forKey: .webhooks)
        try container.encode(limits, forKey: .limits)
        try container.encode(disks, forKey: .disks)
        try container.encode(hosts, forKey: .hosts)
        try container.encode(metrics, forKey: .metrics)
    }
}
