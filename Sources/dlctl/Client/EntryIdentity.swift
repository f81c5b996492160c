import TaskModel

/// The identity that links a task to the file entry it came from: the key, otherwise the kind and URL.
enum EntryIdentity: Hashable {
    case key(String)
    case address(TaskKind, url: String)

    init(_ task: TaskStatus) {
        self = task.key.map { .key($0) } ?? .address(task.kind, url: task.url)
    }

    /// - Returns: `nil` for an entry with an invalid URL.
    init?(_ entry: TaskSpecification) {
        if let key = entry.key {
            self = .key(key)
        } else {
            // Use the redacted URL, which is the form that the daemon shows.
            guard let address = try? TaskAddress(parsing: entry.url) else { return nil }
            self = .address(entry.kind, url: address.redacted)
        }
    }
}
