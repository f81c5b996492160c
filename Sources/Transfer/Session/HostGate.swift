/// Lets so many tasks at a host at once, those of higher priority first, and among equals the one that waits longest.
struct HostGate {
    private struct Waiting {
        var task: Int
        var priority: Double
        var order: Int
    }

    private let limit: Int
    private let limits: HostTable<Int>
    private var running: [String: Int] = [:]
    private var waiting: [String: [Waiting]] = [:]
    /// Where a task is let in or waits.
    private var hosts: [Int: String] = [:]
    private var last = 0

    /// - Parameter limits: in place of `limit`.
    init(limit: Int, limits: HostTable<Int> = HostTable()) {
        self.limit = limit
        self.limits = limits
    }

    /// - Parameter host: scheme, name and port.
    private func limit(of host: String) -> Int { max(1, limits.value(forOrigin: host) ?? limit) }

    var isEmpty: Bool { hosts.isEmpty && running.isEmpty && waiting.isEmpty }

    /// - Returns: whether the task may go; otherwise it waits until ``leave(_:)`` names it.
    mutating func enter(_ task: Int, host: String, priority: Double) -> Bool {
        hosts[task] = host
        if running[host, default: 0] < limit(of: host) {
            running[host, default: 0] += 1
            return true
        }
        last += 1
        let entry = Waiting(task: task, priority: priority, order: last)
        // In the order of their leaving, the next one at the end.
        var list = waiting.removeValue(forKey: host) ?? []
        var (low, high) = (0, list.count)
        while low < high {
            let middle = (low + high) / 2
            if list[middle].priority < priority { low = middle + 1 } else { high = middle }
        }
        list.insert(entry, at: low)
        waiting[host] = list
        return false
    }

    /// A task that was let in is done at its host.
    ///
    /// - Returns: the task that may go in its place.
    mutating func leave(_ task: Int) -> Int? {
        hosts.removeValue(forKey: task).flatMap { next(at: $0) }
    }

    /// A place has become free.
    private mutating func next(at host: String) -> Int? {
        if let next = waiting[host]?.popLast() {
            if waiting[host]?.isEmpty == true { waiting[host] = nil }
            return next.task
        }
        let left = running[host, default: 1] - 1
        running[host] = left > 0 ? left : nil
        return nil
    }

    /// A task that was let in takes one connection more, where no task waits for one.
    mutating func borrow(_ host: String) -> Bool {
        guard waiting[host] == nil, running[host, default: 0] < limit(of: host) else { return false }
        running[host, default: 0] += 1
        return true
    }

    /// A connection that was borrowed is free again.
    ///
    /// - Returns: the task that may go in its place.
    mutating func giveBack(_ host: String) -> Int? { next(at: host) }

    /// Whether a task waits for a connection.
    func isWanted(_ host: String) -> Bool { waiting[host] != nil }

    /// A task that was let in goes on under another number.
    mutating func rename(_ task: Int, to other: Int) {
        if let host = hosts.removeValue(forKey: task) { hosts[other] = host }
    }

    /// - Returns: whether the task waited, and does so no longer.
    mutating func giveUp(_ task: Int) -> Bool {
        guard let host = hosts[task], let index = waiting[host]?.firstIndex(where: { $0.task == task }) else {
            return false
        }
        hosts[task] = nil
        waiting[host]?.remove(at: index)
        if waiting[host]?.isEmpty == true { waiting[host] = nil }
        return true
    }
}
