import DequeModule

/// A limit on concurrent tasks per host. Tasks with higher priority are admitted first, then those that have waited
/// longest.
struct HostConnectionLimiter {
    private struct Waiting {
        var task: Int
        var priority: Double
        var order: Int
    }

    private let limit: Int
    private let limits: HostTable<Int>
    private var running: [String: Int] = [:]
    private var waiting: [String: [Waiting]] = [:]
    /// The hosts at which tasks are admitted or waiting, by task.
    private var hosts: [Int: String] = [:]
    /// The tasks waiting for an additional connection by host, in the order of their requests.
    private var expecting: [String: Deque<Int>] = [:]
    /// The hosts at which each task waits for an additional connection.
    private var expected: [Int: Set<String>] = [:]
    private var last = 0

    /// Creates a limiter.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of connections per host.
    ///   - limits: The limits by host that override `limit`.
    init(limit: Int, limits: HostTable<Int> = HostTable()) {
        self.limit = limit
        self.limits = limits
    }

    /// Returns the limit of a host.
    ///
    /// - Parameter host: Scheme, name and port.
    private func limit(of host: String) -> Int { max(1, limits.value(forOrigin: host) ?? limit) }

    var isEmpty: Bool {
        hosts.isEmpty && running.isEmpty && waiting.isEmpty && expecting.isEmpty && expected.isEmpty
    }

    /// Returns the host at which a task is admitted or waiting.
    func host(of task: Int) -> String? { hosts[task] }

    /// Admits a task or adds it to the waiting list.
    ///
    /// - Returns: Whether the task is admitted. Otherwise it waits until ``leave(_:)`` or ``giveBack(_:)`` returns it.
    mutating func enter(_ task: Int, host: String, priority: Double) -> Bool {
        hosts[task] = host
        if running[host, default: 0] < limit(of: host) {
            running[host, default: 0] += 1
            return true
        }
        last += 1
        let entry = Waiting(task: task, priority: priority, order: last)
        // The list is in reverse order of admission: the next task is at the end.
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

    /// Releases the place of an admitted task.
    ///
    /// - Returns: The waiting task that is admitted in its place.
    mutating func release(_ task: Int) -> Int? {
        forgetRequests(of: task)
        return hosts.removeValue(forKey: task).flatMap { next(at: $0) }
    }

    /// Gives a free place to the next waiting task, if there is one.
    private mutating func next(at host: String) -> Int? {
        if let next = waiting[host]?.popLast() {
            if waiting[host]?.isEmpty == true { waiting[host] = nil }
            return next.task
        }
        let left = running[host, default: 1] - 1
        running[host] = left > 0 ? left : nil
        return nil
    }

    /// Reserves an additional connection for an admitted task, unless a task is waiting for admission.
    ///
    /// - Returns: Whether there is room. Otherwise ``offer(_:)`` returns the task once there is.
    mutating func borrow(_ host: String, for task: Int) -> Bool {
        guard hasRoom(host) else {
            expect(host, for: task)
            return false
        }
        running[host, default: 0] += 1
        return true
    }

    /// Registers a task for an additional connection; ``offer(_:)`` returns it once there is room.
    mutating func expect(_ host: String, for task: Int) {
        guard hosts[task] != nil, expected[task, default: []].insert(host).inserted else { return }
        expecting[host, default: []].append(task)
    }

    /// Returns whether a task at the host may have an additional connection.
    private func hasRoom(_ host: String) -> Bool {
        waiting[host] == nil && running[host, default: 0] < limit(of: host)
    }

    /// Returns the task that has waited longest for an additional connection, if the host has room. Each request is
    /// returned once.
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
            expecting[host]?.removeAll { $0 == task }
            if expecting[host]?.isEmpty == true { expecting[host] = nil }
        }
    }

    /// Releases an additional connection.
    ///
    /// - Returns: The waiting task that is admitted in its place.
    mutating func giveBack(_ host: String) -> Int? { next(at: host) }

    /// Returns whether a task waits for admission.
    func isWanted(_ host: String) -> Bool { waiting[host] != nil }

    /// Moves the place of an admitted task to another task number.
    mutating func rename(_ task: Int, to other: Int) {
        forgetRequests(of: task)
        if let host = hosts.removeValue(forKey: task) { hosts[other] = host }
    }

    /// Removes a task from the waiting list.
    ///
    /// - Returns: Whether the task was waiting.
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
