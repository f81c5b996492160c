/// The connections of one download beyond the one that every task has: each is lent by the limit of its origin, and
/// given back.
struct BorrowedConnections {
    private let task: DownloadTask
    private var session: Session { task.session }
    /// Origins, by the numbers of the connections.
    private var origins: [Int: String] = [:]

    init(of task: DownloadTask) {
        self.task = task
    }

    /// - Returns: whether the origin's limit allows one more.
    mutating func borrow(_ number: Int, at origin: String) -> Bool {
        guard session.borrowConnection(at: origin, for: task) else { return false }
        origins[number] = origin
        return true
    }

    /// Gives back what was lent for `number`. The task's own stays its own: another one at its `origin` goes by that
    /// then.
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

    /// Those for whose origins other tasks wait.
    var wanted: Set<Int> { Set(origins.filter { session.wantsConnection(at: $1) }.keys) }
}
