public import TaskModel

/// The limits, disks and hosts in the result of `daemon.status`.
extension DaemonStatus {
    /// The limits in force.
    public struct Limits: Codable, Sendable, Equatable {
        /// The download limit of all tasks together in bytes per second; `null` for no limit.
        public var downloadRate: Int64?
        public var uploadRate: Int64?
        /// The origin of the limit: `command`, `schedule` or `configuration`.
        public var downloadSource: String
        public var uploadSource: String
        /// The present window of the schedule; `null` if there is none.
        public var window: Window?
        /// The number of tasks that may run at the same time.
        public var activeTasks: Int
        /// The number of tasks of one owner that may run at the same time; `null` for no limit of its own.
        public var activeTasksPerOwner: Int?
        /// The number of connections of one download; `null` if the daemon chooses it.
        public var connectionsPerTask: Int?
        public var connectionsPerHost: Int

        public init(
            downloadRate: Int64?, uploadRate: Int64?, downloadSource: String, uploadSource: String, window: Window?,
            activeTasks: Int, activeTasksPerOwner: Int? = nil, connectionsPerTask: Int?, connectionsPerHost: Int
        ) {
            self.downloadRate = downloadRate
            self.uploadRate = uploadRate
            self.downloadSource = downloadSource
            self.uploadSource = uploadSource
            self.window = window
            self.activeTasks = activeTasks
            self.activeTasksPerOwner = activeTasksPerOwner
            self.connectionsPerTask = connectionsPerTask
            self.connectionsPerHost = connectionsPerHost
        }

        private enum CodingKeys: String, CodingKey {
            case downloadRate, uploadRate, downloadSource, uploadSource, window, activeTasks
            case activeTasksPerOwner, connectionsPerTask, connectionsPerHost
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(downloadRate, forKey: .downloadRate)
            try container.encode(uploadRate, forKey: .uploadRate)
            try container.encode(downloadSource, forKey: .downloadSource)
            try container.encode(uploadSource, forKey: .uploadSource)
            try container.encode(window, forKey: .window)
            try container.encode(activeTasks, forKey: .activeTasks)
            try container.encode(activeTasksPerOwner, forKey: .activeTasksPerOwner)
            try container.encode(connectionsPerTask, forKey: .connectionsPerTask)
            try container.encode(connectionsPerHost, forKey: .connectionsPerHost)
        }
    }

    /// A window of the schedule.
    public struct Window: Codable, Sendable, Equatable {
        /// The days on which the window begins, such as `mon-fri`.
        public var days: String
        /// The beginning and the end in local time, such as `09:00`.
        public var from: String
        public var to: String
        /// The time at which another window begins, or this one ends; `null` if that never happens.
        public var until: Milliseconds?

        public init(days: String, from: String, to: String, until: Milliseconds?) {
            self.days = days
            self.from = from
            self.to = to
            self.until = until
        }

        private enum CodingKeys: String, CodingKey { case days, from, to, until }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(days, forKey: .days)
            try container.encode(from, forKey: .from)
            try container.encode(to, forKey: .to)
            try container.encode(until, forKey: .until)
        }
    }

    /// The disk of a directory beneath which tasks may download.
    public struct Disk: Codable, Sendable, Equatable {
        public var path: String
        /// The free bytes; `null` if the disk does not tell.
        public var free: Int64?
        public var total: Int64?
        /// The free bytes that downloads leave untouched: `disk.min-free`, at most a twentieth of the disk.
        public var minimumFree: Int64

        public init(path: String, free: Int64?, total: Int64?, minimumFree: Int64) {
            self.path = path
            self.free = free
            self.total = total
            self.minimumFree = minimumFree
        }

        private enum CodingKeys: String, CodingKey { case path, free, total, minimumFree }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(path, forKey: .path)
            try container.encode(free, forKey: .free)
            try container.encode(total, forKey: .total)
            try container.encode(minimumFree, forKey: .minimumFree)
        }
    }

    /// A host that receives no new requests at present, or none of one owner's tasks.
    public struct HeldHost: Codable, Sendable, Equatable {
        /// The scheme, name and port.
        public var host: String
        /// The cause: `retry-after` (the host asked for a delay), `failures` (requests failed one after the other),
        /// `probe` (one request tries whether it works again) or `no-route` (this machine has no route to it).
        public var reason: String
        /// The uid of the owner whose tasks are held; `null` if everybody's are.
        public var owner: UInt32?
        /// The time of the next request; `null` if it is unknown.
        public var until: Milliseconds?

        public init(host: String, reason: String, owner: UInt32? = nil, until: Milliseconds?) {
            self.host = host
            self.reason = reason
            self.owner = owner
            self.until = until
        }

        private enum CodingKeys: String, CodingKey { case host, reason, owner, until }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(host, forKey: .host)
            try container.encode(reason, forKey: .reason)
            try container.encode(owner, forKey: .owner)
            try container.encode(until, forKey: .until)
        }
    }
}
