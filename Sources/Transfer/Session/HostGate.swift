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
    /// Tasks that wait for a connection more, in the order of their asking, and the hosts at which they do.
    private var expecting: [String: FIFO<Int>] = [:]
    private var expected: [Int: Set<String>] = [:]
    private var last = 0

    /// - Parameter limits: in place of `limit`.
    init(limit: Int, limits: HostTable<Int> = HostTable()) {
        self.limit = limit
        self.limits = limits
    }

    /// - Parameter host: scheme, name and port.
    private func limit(of host: String) -> Int { max(1, limits.value(forOrigin: host) ?? limit) }

    var isEmpty: Bool {
        hosts.isEmpty && running.isEmpty && waiting.isEmpty && expecting.isEmpty && expected.isEmpty
    }

    /// The host at which a task is let in or waits.
    func host(of task: Int) -> String? { hosts[task] }

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
        forgetRequests(of: task)
        return hosts.removeValue(forKey: task).flatMap { next(at: $0) }
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
    ///
    /// - Returns: whether there is room for it; otherwise ``offer(_:)`` names the task once there is.
    mutating func borrow(_ host: String, for task: Int) -> Bool {
        guard hasRoom(host) else {
            expect(host, for: task)
            return false
        }
        running[host, default: 0] += 1
        return true
    }

    /// A task would take a connection more if one became free: ``offer(_:)`` names it then.
    mutating func expect(_ host: String, for task: Int) {
        guard hosts[task] != nil, expected[task, default: []].insert(host).inserted else { return }
        expecting[host, default: FIFO()].append(task)
    }

    /// Whether a task at the host may have a connection more.
    private func hasRoom(_ host: String) -> Bool {
        waiting[host] == nil && running[host, default: 0] < limit(of: host)
    }

    /// The host may have room for a connection more.
    ///
    /// - Returns: the task that has waited longest for one, where there is room; it is named once for each request.
    mutating func offer(_ host: String) -> Int? {
        guard hasRoom(host), let task = expecting[host]?.first else { return nil }
        expecting[host]?.removeFirst()
        if expecting[host]?.isEmpty == true { expecting[host] = nil }
        expected[task]?.remove(host)
        if expected[task]?.isEmpty == true { expected[task] = nil }
        return task
    }

    private mutating func forgetRequests(of task: Int) {
        for host in expected.removeValue(forKey: task) ?? [] {
            expecting[host]?.remove { $0 == task }
            if expecting[host]?.isEmpty == true { expecting[host] = nil }
        }
    }

    /// A connection that was borrowed is free again.
    ///
    /// - Returns: the task that may go in its place.
    mutating func giveBack(_ host: String) -> Int? { next(at: host) }

    /// Whether a task waits for a connection.
    func isWanted(_ host: String) -> Bool { waiting[host] != nil }

    /// A task that was let in goes on under another number.
    mutating func rename(_ task: Int, to other: Int) {
        forgetRequests(of: task)
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
