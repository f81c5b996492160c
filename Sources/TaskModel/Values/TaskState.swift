/// The state of a task.
///
/// `active` is never stored. It exists only while the scheduler runs the task. A task that was active when the daemon
/// stopped is stored as ready, as it was before it started.
public enum TaskState: String, Codable, Sendable, CaseIterable {
    case queued, active, waiting, paused, completed, failed, cancelled

    /// Whether the state is final, unless a user acts on the task.
    public var isEnded: Bool {
        switch self {
        case .completed, .failed, .cancelled: true
        case .queued, .active, .waiting, .paused: false
        }
    }
}

/// The reason why a task is `waiting` or `paused`.
public enum TaskReason: String, Codable, Sendable, CaseIterable {
    // Reasons of `waiting`.
    case retry, scheduled, network
    case diskFull = "disk-full"
    /// The target file system or directory is missing, read-only, not accessible or faulty.
    case disk
    /// The owner's downloads have used up the owner's storage quota.
    case quota
    case dependency
    // Reasons of `paused`.
    case user
    case urlExpired = "url-expired"
    case auth
    case sourceChanged = "source-changed"
    // Computed on request, never stored.
    case hostLimit = "host-limit"

    /// Whether the task needs user action before it can continue, although no user paused it. A client that waits for
    /// such a task can stop waiting.
    public var needsPerson: Bool {
        switch self {
        case .urlExpired, .auth, .sourceChanged: true
        default: false
        }
    }
}

/// The current activity of an active task.
public enum TaskPhase: String, Codable, Sendable, CaseIterable {
    case connecting, transferring, verifying, publishing
}

/// The direction of a transfer.
public enum TaskKind: String, Codable, Sendable, CaseIterable {
    case download, upload
}

/// The priority of a ready task. Within one priority the older task starts first, unless it was moved.
public enum TaskPriority: String, Codable, Sendable, CaseIterable {
    case low, normal, high
    /// The highest priority. Such a task starts even where all slots are taken, in additional slots whose number is
    /// limited per owner.
    case now

    /// The sort key. A larger rank starts first.
    package var rank: Int {
        switch self {
        case .low: 0
        case .normal: 1
        case .high: 2
        case .now: 3
        }
    }
}

/// The policy for a download whose final name already exists.
public enum ConflictPolicy: String, Codable, Sendable, CaseIterable {
    /// The file gets a numbered name: `NAME (1).ext`.
    case rename
    case overwrite
    /// The task completes without downloading anything.
    case skip
    case fail
}

/// The layout of downloads that name no absolute directory.
public enum DownloadLayout: String, Codable, Sendable, CaseIterable {
    /// A directory for each owner beneath the configured directory. Downloads of the daemon's own user go into the
    /// configured directory itself.
    case perUser = "per-user"
    /// The configured directory for all owners.
    case shared
}

/// The current state of a completed download's file.
public enum FileState: String, Codable, Sendable, CaseIterable {
    /// The file is where the task put it.
    case present
    /// A different file has its name.
    case replaced
    /// The file is gone, and no other file has its name.
    case missing
}
