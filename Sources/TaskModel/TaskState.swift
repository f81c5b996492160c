/// Where a task stands.
///
/// `active` is never stored: it is the scheduler's word for a task that runs at this moment, and a task found
/// in the store after the daemon's end is as ready as it was before it was started.
public enum TaskState: String, Codable, Sendable, CaseIterable {
    case queued, active, waiting, paused, completed, failed, cancelled

    /// Nothing more happens to a task in this state unless a person asks for it.
    public var isEnded: Bool {
        switch self {
        case .completed, .failed, .cancelled: true
        case .queued, .active, .waiting, .paused: false
        }
    }
}

/// Why a task is `waiting` or `paused`.
public enum TaskReason: String, Codable, Sendable, CaseIterable {
    // Waiting.
    case retry, scheduled, network
    case diskFull = "disk-full"
    /// The place on disk is missing, read-only, forbidden or broken.
    case disk
    /// The owner's downloads take up all the bytes that they may.
    case quota
    case dependency
    // Paused.
    case user
    case urlExpired = "url-expired"
    case auth
    case sourceChanged = "source-changed"
    // Computed when asked for, never stored.
    case hostLimit = "host-limit"

    /// A person is needed before the task can go on, though no person paused it. Whoever waits for such a
    /// task need not wait any longer.
    public var needsPerson: Bool {
        switch self {
        case .urlExpired, .auth, .sourceChanged: true
        default: false
        }
    }
}

/// What an active task is busy with.
public enum TaskPhase: String, Codable, Sendable {
    case connecting, transferring, verifying, publishing
}

/// Which way the bytes go.
public enum TaskKind: String, Codable, Sendable, CaseIterable {
    case download, upload
}

/// Which ready task goes first; within one priority the older goes first, unless it was moved.
public enum TaskPriority: String, Codable, Sendable, CaseIterable {
    case low, normal, high
    /// Before all others, and where all slots are taken beside them: a few tasks of each owner at a time.
    case now

    /// Larger goes first.
    package var rank: Int {
        switch self {
        case .low: 0
        case .normal: 1
        case .high: 2
        case .now: 3
        }
    }
}

/// What becomes of a download whose final name is taken.
public enum ConflictPolicy: String, Codable, Sendable, CaseIterable {
    /// `NAME (1).ext`
    case rename
    case overwrite
    /// The task completes without fetching anything.
    case skip
    case fail
}

/// Where downloads go that name no absolute directory.
public enum DownloadLayout: String, Codable, Sendable, CaseIterable {
    /// Into a directory for each owner beneath the configured one; those of the daemon's own user into that itself.
    case perUser = "per-user"
    /// Into the configured directory, whosever they are.
    case shared
}

/// What became of a finished file.
public enum FileState: String, Codable, Sendable, CaseIterable {
    /// It is where the task put it.
    case present
    /// Something else has its name.
    case replaced
    /// Nothing has its name.
    case missing
}
