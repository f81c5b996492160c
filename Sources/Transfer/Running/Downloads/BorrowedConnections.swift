/// The additional connections of one download, beyond the one that every task has. Each is borrowed from the connection
/// limit of its origin and returned to it.
struct BorrowedConnections {
    private let task: DownloadTask
    private var session: Session { task.session }
    /// The origins by connection number.
    private var origins: [Int: String] = [:]

    init(of task: DownloadTask) {
        self.task = task
    }

    /// Borrows a connection.
    ///
    /// - Returns: whether the origin's limit permits another connection.
    mutating func borrow(_ number: Int, at origin: String) -> Bool {
        guard session.borrowConnection(at: origin, for: task) else { return false }
        origins[number] = origin
        return true
    }

    /// Returns the connection borrowed for `number`. If `number` is the task's own connection, another connection at
    /// its `origin` is returned instead and then counts as the task's own.
    mutating func giveBack(_ number: Int, at origin: String?) {
        guard let lent = origins[number] != nil ? number : origins.first(where: { $1 == origin })?.key,
            let origin = origins.removeValue(forKey: lent)
        else { return }
        session.giveBackConnection(at: origin)
    }

    mutating func giveBackAll() {
        for origin in origins.values { session.giveBackConnection(at: origin) }
        origins = [:]
    }

    /// The numbers of the connections at whose origins other tasks wait for a connection.
    var wanted: Set<Int> { Set(origins.filter { session.wantsConnection(at: $1) }.keys) }
}
