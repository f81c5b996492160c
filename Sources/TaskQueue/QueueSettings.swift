import TaskFiles
import TaskModel
import TaskStore
import Transfer

/// What the queue goes by: the configuration, with everything filled in that depends on the daemon's surroundings.
package struct QueueSettings: Sendable, Equatable {
    /// Absolute; where tasks go that name no directory, or a relative one.
    package var downloadDirectory: String
    /// Absolute; where tasks that name an absolute directory may go.
    package var downloadRoots: [String]
    /// Absolute; from beneath these others than the daemon's own user may upload.
    package var uploadRoots: [String]
    /// Of relative directories.
    package var layout: DownloadLayout
    /// Where nothing is read from or written to, whatever encloses it.
    package var protectedPlaces = ProtectedPlaces([])
    package var onConflict: ConflictPolicy
    package var activeTasks: Int
    /// Of one download; a task may name its own.
    package var segments: Segments
    package var connectionsPerHost: Int
    /// In place of ``connectionsPerHost``.
    package var hostConnections: HostTable<Int>
    /// The versions of HTTP that hosts are spoken to in; 1.1 with others.
    package var httpVersions: HostTable<HTTPVersion>
    package var quota: Quota
    /// Bytes that the parts and files of one owner's tasks may take up.
    package var bytesPerOwner: Int64?
    /// Bytes a second in each direction, outside of the schedule's windows.
    package var rates: TransferRates
    /// Within ``rates``.
    package var hostRates: HostTable<TransferRates>
    package var schedule: Schedule
    /// Milliseconds for which tasks are kept that ended, and how many of them.
    package var historyAge: Milliseconds
    package var historyCount: Int
    /// Milliseconds for which the journal is kept, and how many of its events.
    package var eventAge: Milliseconds
    package var eventCount: Int
    package var retry: RetryPolicy
    /// Milliseconds without a byte after which an attempt has stalled.
    package var stallTimeout: Milliseconds
    /// Bytes.
    package var minimumFree: Int64
    /// Bytes; a larger download fails.
    package var maximumSize: Int64?
    /// The uid that the daemon runs as.
    package var daemonUser: UInt32
    /// Judges directories for the daemon's process.
    package var inspector: PlaceInspector
    /// Absolute; private keys by which SSH servers let that user in, the first one to be tried first.
    package var sshKeys: [String]

    /// - Parameters:
    ///   - downloadDirectory: for a configuration that names none.
    ///   - layout: for a configuration that names none.
    ///   - unit: as of ``PlaceInspector``.
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
        schedule = configuration.schedule
        historyAge = configuration.history.age
        historyCount = configuration.history.count
        eventAge = configuration.events.age
        eventCount = configuration.events.count
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

    /// Whether a user may do whatever the daemon can: root, and the daemon's own user.
    func isTrusted(_ uid: UInt32) -> Bool { uid == 0 || uid == daemonUser }

    /// Connections that a host may have at a time.
    ///
    /// - Parameter host: scheme, name and port.
    func connections(ofHost host: String) -> Int {
        hostConnections.value(forOrigin: host) ?? connectionsPerHost
    }

    private static func version(_ asked: Configuration.HTTPVersion) -> HTTPVersion {
        switch asked {
        // What several connections to one server need.
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
