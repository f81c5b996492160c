/// The registration of a download among the downloads from the same host.
struct PathMembership {
    private let lines: HostPaths
    private let task: Int
    private let host: String

    /// Registers the download; ``unregister()`` removes the registration.
    init(_ task: DownloadTask, at host: String, now: Int64) {
        lines = task.session.resources.lines
        self.task = task.identifier
        self.host = host
        lines.enter(self.task, at: host, progress: task.progress, now: now)
    }

    func unregister() { lines.unregister(task, at: host) }

    /// Returns the current state of the host's downloads.
    ///
    /// - Parameter isTrying: as in ``HostPaths/look(_:at:connections:isTrying:now:)``.
    func look(connections: Int, isTrying: Bool, now: Int64) -> PathView? {
        lines.look(task, at: host, connections: connections, isTrying: isTrying, now: now)
    }

    func record(_ capacity: PathCapacity, now: Int64) { lines.record(capacity, at: host, now: now) }
}
