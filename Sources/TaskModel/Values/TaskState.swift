/// The state of a task.
///
/// `active` is never stored. It exists only while the scheduler runs the task. A task that was active when the daemon
/// stopped is stored as ready, as it was before it started.
public enum TaskState: String, Codable, Sendable, CaseIterable {
    /// The task starts as soon as it is its turn.
    case queued
    /// The daemon transfers the file.
    case active
    /// The task waits for a time or an event; a ``TaskReason`` says for which.
    case waiting
    /// The task does not continue before someone resumes it.
    case paused
    /// The file is complete, or was sent.
    case completed
    /// The task ended with an error.
    case failed
    /// A user ended the task.
    case cancelled

    /// Whether the state is final, unless a user acts on the task.
    public var isEnded: Bool {
        switch self {
        case .completed, .failed, .cancelled: true
        case .queued, .active, .waiting, .paused: false
        }
    }
}

/// The reason why a task is `waiting` or `paused`, or completed without a transfer.
public enum TaskReason: String, Codable, Sendable, CaseIterable {
    // Reasons of `waiting`.
    /// The time of the next attempt after an error.
    case retry
    /// The time at which the user wants the start.
    case scheduled
    /// A network connection.
    case network
    /// Room on the file system.
    case diskFull = "disk-full"
    /// The target file system or directory is missing, read-only, not accessible or faulty.
    case disk
    /// The owner's downloads have used up the owner's storage quota.
    case quota
    /// The end of the task on which this one depends.
    case dependency
    // Reasons of `paused`.
    /// A user paused the task.
    case user
    /// The URL has expired; `dlctl set ID --url` gives a new one.
    case urlExpired = "url-expired"
    /// The server or a proxy requires a user name and password, or refuses access.
    case auth
    /// The source of an upload has changed.
    case sourceChanged = "source-changed"
    // A reason of `completed`.
    /// The server has the version of the file that is there.
    case unchanged
    // Computed on request, never stored.
    /// The host has as many connections as it may have.
    case hostLimit = "host-limit"
    /// The owner has as many active tasks as the configuration allows.
    case ownerLimit = "owner-limit"

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
    /// The daemon connects, or waits for the response.
    case connecting
    /// Bytes arrive or are sent.
    case transferring
    /// The file is compared with its checksum.
    case verifying
    /// The file gets its final name.
    case publishing
}

/// The direction of a transfer.
public enum TaskKind: String, Codable, Sendable, CaseIterable {
    /// From the server to a file.
    case download
    /// From a file to the server.
    case upload
}

/// The priority of a ready task. Within one priority the older task starts first, unless it was moved.
public enum TaskPriority: String, Codable, Sendable, CaseIterable {
    /// After all other tasks of the owner.
    case low
    /// The default.
    case normal
    /// Before the owner's tasks of normal priority.
    case high
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

/// The source of a download's file name.
public enum NameSource: String, Codable, Sendable, CaseIterable {
    /// The last segment of the task's URL.
    case url
    /// The last segment of the URL to which the task's URL was redirected.
    case final
    /// The `Content-Disposition` of the response, otherwise the task's URL.
    case header
}

/// The policy for a download whose final name already exists.
public enum ConflictPolicy: String, Codable, Sendable, CaseIterable {
    /// The file gets a numbered name: `NAME (1).ext`.
    case rename
    /// The file replaces the one that is there.
    case overwrite
    /// The task completes without downloading anything.
    case skip
    /// The task fails with `name-conflict`.
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
