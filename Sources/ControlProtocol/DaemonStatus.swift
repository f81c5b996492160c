import TaskModel

/// Of `daemon.status`.
public struct DaemonStatus: Codable, Sendable, Equatable {
    /// Stands for the path of a socket that systemd made.
    public static let inheritedSocket = "from systemd"

    public var version: String
    public var pid: Int32
    /// Milliseconds since the daemon's start.
    public var uptime: Milliseconds
    /// Its path, or ``inheritedSocket``.
    public var socket: String
    public var stateDirectory: String
    public var downloadDirectory: String
    public var libcurl: String
    /// Tasks by state; every state is there.
    public var tasks: [String: Int]
    /// Bytes a second, all downloads together.
    public var downloadRate: Int64
    public var uploadRate: Int64
    /// The number of the newest event.
    public var lastEvent: Int64
    /// Transfers that stood still although there was work for them, and that the engine's watchdog had to kick, since
    /// the daemon's start. Anything but 0 is a defect.
    public var internalFaults: Int
    /// The pause that a window of the schedule makes; `null`: none does.
    public var schedulePause: SchedulePause?
    /// Why tasks wait; `null` from a daemon that does not tell.
    public var waiting: Waiting?
    /// Bytes that downloads take up on disk; `null` from a daemon that does not tell.
    public var storage: Storage?
    /// Problems around the daemon that need an administrator, a line for each: places that cannot be used, a
    /// refused configuration, dropped files that cannot be moved. Told to administrators; empty for others, and `null`
    /// from a daemon that does not tell.
    public var problems: [String]?

    /// Nothing runs, since a window of the schedule says so.
    public struct SchedulePause: Codable, Sendable, Equatable {
        /// The end of the window; `null`: it has none.
        public var until: Milliseconds?

        public init(until: Milliseconds?) { self.until = until }

        private enum CodingKeys: String, CodingKey { case until }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(until, forKey: .until)
        }
    }

    /// Bytes of parts, and of finished files, that a task still names.
    public struct Storage: Codable, Sendable, Equatable {
        /// Bytes that one owner's downloads may take up; `null`: any number.
        public var limit: Int64?
        /// The caller alone; for administrators, the hundred who have the most.
        public var owners: [Owner]

        public struct Owner: Codable, Sendable, Equatable {
            /// Its uid.
            public var owner: UInt32
            /// With those that have been taken beforehand for downloads that run.
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
        /// Waiting tasks that were looked at; where they are fewer than all that wait, the causes are those of a part.
        public var counted: Int
        /// The most frequent first.
        public var causes: [Cause]

        public init(counted: Int, causes: [Cause]) {
            self.counted = counted
            self.causes = causes
        }
    }

    /// Tasks that wait for one reason and failed alike.
    public struct Cause: Codable, Sendable, Equatable {
        /// The tasks' `reason`.
        public var reason: String
        /// The code of their last error; `null`: they had none.
        public var code: ErrorCode?
        /// The message of their last error, where it is the same for all.
        public var message: String?
        public var tasks: Int
        /// When the first of them is tried again.
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
        storage: Storage? = nil, problems: [String]? = nil
    ) {
        self.version = version
        self.pid = pid
        self.uptime = uptime
        self.socket = socket
        self.stateDirectory = stateDirectory
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
    }

    private enum CodingKeys: String, CodingKey {
        case version, pid, uptime, socket, stateDirectory, downloadDirectory, libcurl, tasks, downloadRate, uploadRate
        case lastEvent, internalFaults, schedulePause, waiting, storage, problems
    }

    public func encode(to encoder: any Encoder) throws {
        // `encode` and not `encodeIfPresent`: fields never vanish.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(version, forKey: .version)
        try container.encode(pid, forKey: .pid)
        try container.encode(uptime, forKey: .uptime)
        try container.encode(socket, forKey: .socket)
        try container.encode(stateDirectory, forKey: .stateDirectory)
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
    }
}
