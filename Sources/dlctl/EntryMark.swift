import TaskModel

/// What a task shows of the entry that it came from: the key, otherwise kind and URL.
enum EntryMark: Hashable {
    case key(String)
    case address(TaskKind, url: String)

    init(_ task: TaskStatus) {
        self = task.key.map { .key($0) } ?? .address(task.kind, url: task.url)
    }

    /// - Returns: `nil` for an entry whose URL is none.
    init?(_ entry: TaskSpecification) {
        if let key = entry.key {
            self = .key(key)
        } else {
            // As the daemon shows it.
            guard let address = try? TaskAddress(parsing: entry.url) else { return nil }
            self = .address(entry.kind, url: address.redacted)
        }
    }
}
