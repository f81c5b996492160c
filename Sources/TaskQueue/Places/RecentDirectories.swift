import Synchronization
import TaskModel
import Transfer

/// The directories of running downloads that were opened and checked within the last moment.
///
/// Many small files would otherwise open and check the same directory for each few of them. An entry does not keep its
/// directory open, so that the file system can be unmounted once no download uses it.
final class RecentDirectories: Sendable {
    /// The parameters that determine a task's directory.
    struct Key: Hashable {
        var directory: String?
        var user: UserIdentity
    }

    /// A directory that downloads may go to.
    struct Found {
        var directory: Directory
        /// The bytes to keep free on its file system.
        var reservedSpace: Int64
    }

    private struct Entry {
        weak var directory: Directory?
        var reservedSpace: Int64
        /// The monotonic time of the check.
        var checkedAt: Milliseconds
    }

    /// The time in milliseconds for which a check is valid.
    static let validity: Milliseconds = 100
    /// The maximum number of entries.
    private static let limit = 64

    private let entries = Mutex<[Key: Entry]>([:])

    /// Returns a directory that was checked a moment ago and is still open.
    func find(_ key: Key, now: Milliseconds) -> Found? {
        entries.withLock { entries in
            guard let entry = entries[key], now - entry.checkedAt < Self.validity, let directory = entry.directory
            else { return nil }
            return Found(directory: directory, reservedSpace: entry.reservedSpace)
        }
    }

    /// Records that a directory has been checked.
    func record(_ found: Found, for key: Key, now: Milliseconds) {
        entries.withLock { entries in
            if entries.count >= Self.limit { entries.removeAll() }
            entries[key] = Entry(
                directory: found.directory, reservedSpace: found.reservedSpace, checkedAt: now)
        }
    }

    /// Discards all checks, since the settings have changed.
    func removeAll() { entries.withLock { $0.removeAll() } }
}
