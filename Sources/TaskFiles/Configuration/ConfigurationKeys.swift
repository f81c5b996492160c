/// The configuration's keys by section. The reader of a section names each key of it in a `switch`, so that a key without
/// a reader does not compile.
enum ConfigurationKeys {
    enum Top: String, CaseIterable {
        case downloads, uploads, limits, retry, timeouts, disk, tls, network, hosts, schedule, queues, watch, history
        case events, notify, control, metrics, log
    }

    enum Downloads: String, CaseIterable {
        case directory, roots
        case onConflict = "on-conflict"
        case layout
    }

    enum Uploads: String, CaseIterable { case roots }

    enum Limits: String, CaseIterable {
        case activeTasks = "active-tasks"
        case connectionsPerTask = "connections-per-task"
        case connectionsPerHost = "connections-per-host"
        case downloadRate = "download-rate"
        case uploadRate = "upload-rate"
        case tasksPerOwner = "tasks-per-owner"
        case tasksPerBatch = "tasks-per-batch"
        case activeTasksPerOwner = "active-tasks-per-owner"
        case bytesPerOwner = "bytes-per-owner"
        case recordsPerOwner = "records-per-owner"
    }

    enum Retry: String, CaseIterable {
        case attempts
        case baseDelay = "base-delay"
        case maxDelay = "max-delay"
    }

    enum Timeouts: String, CaseIterable { case connect, stall }

    enum Disk: String, CaseIterable {
        case minFree = "min-free"
        case maxSize = "max-size"
    }

    enum TLS: String, CaseIterable { case caFile = "ca-file" }

    enum Network: String, CaseIterable {
        case proxy
        case noProxy = "no-proxy"
        case deny, exempt
    }

    enum Host: String, CaseIterable {
        case connections
        case httpVersion = "http-version"
        case downloadRate = "download-rate"
        case uploadRate = "upload-rate"
        case requestsPerSecond = "requests-per-second"
        case headers, credential, owners, trust, proxy, timeouts
    }

    enum Trust: String, CaseIterable {
        case caFile = "ca-file"
        case pin
    }

    enum Window: String, CaseIterable {
        case days, from, to
        case downloadRate = "download-rate"
        case uploadRate = "upload-rate"
        case pause
    }

    /// The keys of `history` and `events`.
    enum Kept: String, CaseIterable { case age, count }

    enum Queue: String, CaseIterable { case files, prune }
    enum Watch: String, CaseIterable { case directory, defaults }
    enum Webhook: String, CaseIterable { case url, on, batch, headers, secret }

    enum Control: String, CaseIterable {
        case socket, mode, group
        case adminGroup = "admin-group"
    }

    enum Metrics: String, CaseIterable { case textfile }
    enum Log: String, CaseIterable { case level }
}
