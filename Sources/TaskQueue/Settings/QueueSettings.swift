package import TaskFiles
package import TaskModel
package import TaskStore
package import Transfer

/// The settings of the queue: the configuration, completed with values that depend on the daemon's environment.
package struct QueueSettings: Sendable {
    /// The absolute path of the directory for tasks that name no directory, or a relative one.
    package var downloadDirectory: String
    /// The absolute paths beneath which a task may name an absolute directory.
    package var downloadRoots: [String]
    /// Whether a task of the daemon's own user may name any directory that this user can write to: the rule of a user's own
    /// daemon without ``downloadRoots`` in its configuration.
    package var allowsEveryDirectory = false
    /// The absolute paths beneath which users other than the daemon's own may upload files.
    package var uploadRoots: [String]
    /// The layout of relative directories.
    package var layout: DownloadLayout
    /// The places that no task may read from or write to, even where a root encloses them.
    package var protectedPlaces = ProtectedPlaces([])
    package var onConflict: ConflictPolicy
    package var activeTasks: Int
    /// The maximum number of running tasks of one owner; `nil` for no limit.
    package var activeTasksPerOwner: Int?
    /// The number of ending tasks that no machine needs more of.
    package static let mostEndingTasks = 4_096
    /// The maximum number of tasks that have received all bytes and are being published and recorded. Each keeps its file
    /// open.
    package var endingTasks = Self.mostEndingTasks
    /// The number of connections of one download. A task may override it.
    package var segments: Segments
    package var connectionsPerHost: Int
    /// The overrides of ``connectionsPerHost`` for individual hosts.
    package var hostConnections: HostTable<Int>
    /// The HTTP version for each host. All other hosts use HTTP/1.1.
    package var httpVersions: HostTable<HTTPVersion>
    package var quota: Quota
    /// The quota for the part files and files of one owner's tasks, in bytes; `nil` for unlimited.
    package var bytesPerOwner: Int64?
    /// The rate limits in bytes per second, outside the windows of the schedule.
    package var rates: TransferRates
    /// The additional rate limits of individual hosts, within ``rates``.
    package var hostRates: HostTable<TransferRates>
    /// The limits on requests per second of individual hosts.
    package var hostRequestRates: HostTable<Double>
    package var schedule: Schedule
    /// The retention time of ended tasks, in milliseconds.
    package var historyAge: Milliseconds
    /// The maximum number of ended tasks that are kept.
    package var historyCount: Int
    /// The retention time of journal events, in milliseconds.
    package var eventAge: Milliseconds
    /// The maximum number of journal events that are kept.
    package var eventCount: Int
    /// The receivers of events by HTTP.
    package var webhooks: [Webhook]
    package var retry: RetryPolicy
    /// The stall time-out of an attempt: the time without a byte, in milliseconds.
    package var stallTimeout: Milliseconds
    /// The free disk space that downloads leave untouched, in bytes.
    package var minimumFree: Int64
    /// The maximum size of a download in bytes. A larger one fails.
    package var maximumSize: Int64?
    /// The uid of the daemon process.
    package var daemonUser: UInt32
    /// The owners to whom the denied networks of the session do not apply.
    package var networkExemption = NetworkExemption.none
    /// The credentials and header lines that requests are sent with, by host.
    package var hostAccess = HostTable<HostAccess>()
    /// The check of directories on behalf of the daemon process.
    package var inspector: PlaceInspector
    /// The absolute paths of the daemon user's private SSH keys, in the order in which they are tried.
    package var sshKeys: [String]

    /// Combines the configuration with the daemon's environment.
    ///
    /// - Parameters:
    ///   - downloadDirectory: the default for a configuration that names no directory.
    ///   - layout: the default for a configuration that names no layout.
    ///   - unit: the systemd unit; see ``PlaceInspector``.
    package init(
        _ configuration: Configuration, downloadDirectory: String, layout: DownloadLayout = .shared,
        daemonUser: UInt32, unit: String? = nil
    ) {
        self.downloadDirectory = configuration.downloads.directory ?? downloadDirectory
        downloadRoots = configuration.downloads.roots ?? [self.downloadDirectory]
        uploadRoots = configuration.uploads.roots
        self.layout = configuration.downloads.layout ?? layout
        onConflict = configuration.downloads.onConflict
        activeTasks = configuration.limits.activeTasks
        activeTasksPerOwner = configuration.limits.activeTasksPerOwner
        segments = Self.segments(configuration.limits.connectionsPerTask)
        connectionsPerHost = configuration.limits.connectionsPerHost
        hostConnections = HostTable(configuration.hosts.compactMapValues(\.connections))
        httpVersions = HostTable(configuration.hosts.compactMapValues { $0.httpVersion.map(Self.version) })
        quota = Quota(
            tasksPerOwner: configuration.limits.tasksPerOwner, tasksPerBatch: configuration.limits.tasksPerBatch,
            recordsPerOwner: configuration.limits.recordsPerOwner)
        bytesPerOwner = configuration.limits.bytesPerOwner
        rates = TransferRates(
            download: configuration.limits.downloadRate, upload: configuration.limits.uploadRate)
        hostRates = HostTable(
            configuration.hosts.compactMapValues { host in
                let rates = TransferRates(download: host.downloadRate, upload: host.uploadRate)
                return rates == TransferRates() ? nil : rates
            })
        hostRequestRates = HostTable(configuration.hosts.compactMapValues(\.requestsPerSecond))
        schedule = configuration.schedule
        historyAge = configuration.history.age
        historyCount = configuration.history.count
        eventAge = configuration.events.age
        eventCount = configuration.events.count
        webhooks = configuration.notify
        retry = RetryPolicy(
            attempts: configuration.retry.attempts, baseDelay: configuration.retry.baseDelay,
            maximumDelay: configuration.retry.maxDelay)
        stallTimeout = configuration.timeouts.stall
        minimumFree = configuration.disk.minFree
        maximumSize = configuration.disk.maxSize
        self.daemonUser = daemonUser
        inspector = PlaceInspector(unit: unit, uid: daemonUser)
        sshKeys = TaskLogin.keys(beneath: AccountNames.home(of: daemonUser))
    }

    /// Returns the policy for retries of a task, which may have its own number of attempts.
    func retry(of specification: TaskSpecification) -> RetryPolicy {
        var policy = retry
        if let attempts = specification.maxAttempts { policy.attempts = attempts }
        return policy
    }

    /// Returns what happens where the name of a download's file is taken.
    func conflictPolicy(of task: TaskSpecification) -> ConflictPolicy {
        task.update ? .overwrite : task.onConflict ?? onConflict
    }

    /// Whether a user may do everything that the daemon can do: root, and the daemon's own user.
    func isTrusted(_ uid: UInt32) -> Bool { uid == 0 || uid == daemonUser }

    /// Returns the maximum number of concurrent connections to a host.
    ///
    /// - Parameter host: the host key: scheme, host and port.
    func connections(ofHost host: String) -> Int {
        hostConnections.value(forOrigin: host) ?? connectionsPerHost
    }

    private static func version(_ asked: Configuration.HTTPVersion) -> HTTPVersion {
        switch asked {
        // Multiple connections to one server require HTTP/1.1.
        case .auto, .http1: .http1
        case .http2: .http2
        case .http3: .http3
        }
    }

    static func segments(_ count: ConnectionCount) -> Segments {
        switch count {
        case .auto: .automatic(upTo: ConnectionCount.bounds.upperBound)
        case .exactly(let count): .fixed(count)
        }
    }
}
