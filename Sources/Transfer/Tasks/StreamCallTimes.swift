import Curl

/// The time limits of a stream's pending calls. Time counts only while the stream is not suspended.
struct StreamCallTimes {
    /// The calls without a time limit of their own.
    private var unlimited: Set<Int> = []
    /// The time limits of calls whose time is not running, in milliseconds.
    private var limits: [Int: Int64] = [:]
    private var deadlines: [Int: MonotonicTime] = [:]

    /// Whether a call has no time limit of its own.
    var hasUnlimited: Bool { !unlimited.isEmpty }

    func contains(_ id: Int) -> Bool { unlimited.contains(id) || limits[id] != nil || deadlines[id] != nil }

    /// - Parameter limit: the time limit in milliseconds.
    mutating func add(_ id: Int, limit: Int64?) {
        if let limit { limits[id] = max(0, limit) } else { unlimited.insert(id) }
    }

    mutating func remove(_ id: Int) {
        unlimited.remove(id)
        limits[id] = nil
        deadlines[id] = nil
    }

    /// Starts the time of the calls whose time is not running.
    ///
    /// - Returns: the earliest deadline; `nil` if there is none.
    mutating func start(_ now: MonotonicTime) -> MonotonicTime? {
        if !limits.isEmpty {
            for (id, limit) in limits { deadlines[id] = now.advanced(milliseconds: limit) }
            limits = [:]
        }
        return deadlines.isEmpty ? nil : deadlines.values.min()
    }

    /// Stops the time of all calls.
    mutating func stop(_ now: MonotonicTime) {
        for (id, deadline) in deadlines { limits[id] = deadline.milliseconds(since: now) }
        deadlines = [:]
    }

    /// Returns the calls whose time is up, in their order.
    func expired(at now: MonotonicTime) -> [Int] { deadlines.filter { $0.value <= now }.keys.sorted() }
}
