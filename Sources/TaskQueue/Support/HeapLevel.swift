/// A policy that decides when to return the heap memory freed by ended tasks to the operating system.
///
/// The allocator keeps freed pages for the next tasks. After half of many concurrent tasks have ended, the next ones
/// may not start for a long time. With fewer concurrent tasks the freed memory is fragmented, and grows with the number
/// of ended tasks.
struct HeapLevel {
    /// The maximum number of concurrent tasks since memory was last returned.
    private var most = 0
    /// The number of checks until memory is returned; `nil` where none is scheduled.
    private var checksLeft: Int?
    /// The number of tasks that have ended since memory was last returned.
    private var ended = 0
    /// The number of checks since memory was last returned.
    private var checks = 0

    /// The minimum number of concurrent tasks for the first rule (half of the tasks have ended).
    static let least = 64
    /// The delay of the first rule, in checks. It covers the work that follows the end of tasks.
    static let delay = 4
    /// The number of ended tasks for the second rule, which applies to any number of concurrent tasks.
    static let many = 64
    /// The minimum interval of the second rule, in checks.
    static let interval = 60

    /// Whether memory must be returned at one of the next checks.
    var isPending: Bool { checksLeft != nil || ended >= Self.many }

    /// Records the number of running tasks and the number of tasks that have ended since the last call.
    mutating func record(_ running: Int, ended: Int = 0) {
        most = max(most, running)
        self.ended += ended
        if checksLeft == nil, most >= Self.least, running <= most / 2 { checksLeft = Self.delay }
    }

    /// Records the number of running tasks and decides. Must be called at equal intervals.
    ///
    /// - Returns: Whether to return memory now.
    mutating func check(at running: Int) -> Bool {
        record(running)
        checks += 1
        if let left = checksLeft {
            checksLeft = left > 1 ? left - 1 : nil
            if left > 1 { return false }
        } else if ended < Self.many || checks < Self.interval {
            return false
        }
        (most, ended, checks) = (running, 0, 0)
        return true
    }
}
