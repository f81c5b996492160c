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
    /// Tasks that were refused a connection more, in the order of their asking, and the hosts that refused them.
    private var refused: [String: FIFO<Int>] = [:]
    private var refusals: [Int: Set<String>] = [:]
    private var last = 0

    /// - Parameter limits: in place of `limit`.
    init(limit: Int, limits: HostTable<Int> = HostTable()) {
        self.limit = limit
        self.limits = limits
    }

    /// - Parameter host: scheme, name and port.
    private func limit(of host: String) -> Int { max(1, limits.value(forOrigin: host) ?? limit) }

    var isEmpty: Bool {
        hosts.isEmpty && running.isEmpty && waiting.isEmpty && refused.isEmpty && refusals.isEmpty
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
        forgetRefusals(of: task)
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
            if refusals[task, default: []].insert(host).inserted { refused[host, default: FIFO()].append(task) }
            return false
        }
        running[host, default: 0] += 1
        return true
    }

    /// Whether a task at the host may have a connection more.
    private func hasRoom(_ host: String) -> Bool {
        waiting[host] == nil && running[host, default: 0] < limit(of: host)
    }

    /// The host may have room for a connection more.
    ///
    /// - Returns: the task that was refused one first, where there is room; it is named once for each refusal.
    mutating func offer(_ host: String) -> Int? {
        guard hasRoom(host), let task = refused[host]?.first else { return nil }
        refused[host]?.removeFirst()
        if refused[host]?.isEmpty == true { refused[host] = nil }
        refusals[task]?.remove(host)
        if refusals[task]?.isEmpty == true { refusals[task] = nil }
        return task
    }

    private mutating func forgetRefusals(of task: Int) {
        for host in refusals.removeValue(forKey: task) ?? [] {
            refused[host]?.remove { $0 == task }
            if refused[host]?.isEmpty == true { refused[host] = nil }
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
        forgetRefusals(of: task)
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
