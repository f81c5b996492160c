import Synchronization

/// The network paths to the hosts of a session's downloads: their throughput and their measured capacity.
///
/// Each session has one, in memory. It is used once per look of a download, not once per received chunk.
final class HostPaths: Sendable {
    private struct Member {
        let progress: TransferProgress
        /// The bytes that its request had received when the download entered.
        let before: Int64
        var connections = 1
    }

    private struct Line {
        var members: [Int: Member] = [:]
        /// The bytes received by downloads that have left.
        var gone: Int64 = 0
        /// The download that is trying a number of connections.
        var trying: Int?
        var capacity: PathCapacity?
        /// The time of the measurement, in milliseconds on the session's clock.
        var measuredAt: Int64 = 0
        /// The end of the time for which the host gets one connection of a download only.
        var servesOneUntil: Int64?

        /// Whether there is nothing to remember of the host.
        var isBlank: Bool { members.isEmpty && capacity == nil && servesOneUntil == nil }
        /// The time of the latest measurement.
        var rememberedAt: Int64 { max(measuredAt, (servesOneUntil ?? 0) - HostPaths.memory) }
    }

    private let lines = Mutex<[String: Line]>([:])

    /// Milliseconds for which a measured capacity is valid.
    static let memory: Int64 = 600_000
    /// The maximum number of hosts.
    static let limit = 256
    /// The number of downloads from a host above which each is considered alone and tries nothing.
    private static let maximumShared = 64

    /// Adds a download that begins to receive from `host`.
    func enter(_ task: Int, at host: String, progress: TransferProgress, now: Int64) {
        lines.withLock { lines in
            if lines[host] == nil, lines.count >= Self.limit { Self.forget(&lines, now) }
            lines[host, default: Line()].members[task] = Member(progress: progress, before: progress.transferredBytes)
        }
    }

    func unregister(_ task: Int, at host: String) {
        lines.withLock { lines in
            guard let member = lines[host]?.members.removeValue(forKey: task) else { return }
            lines[host]?.gone &+= member.progress.transferredBytes &- member.before
            if lines[host]?.trying == task { lines[host]?.trying = nil }
            if lines[host]?.isBlank == true { lines[host] = nil }
        }
    }

    /// Updates a download's state and returns that of the line.
    ///
    /// - Parameters:
    ///   - connections: The number of the download's connections.
    ///   - isTrying: Whether it is trying a number of connections. Only one download per host does so at a time.
    /// - Returns: The state of the line, with only this download's bytes if the host has too many downloads; `nil` if
    ///   the download is unknown.
    func look(_ task: Int, at host: String, connections: Int, isTrying: Bool, now: Int64) -> PathView? {
        lines.withLock { lines in
            guard lines[host]?.members[task] != nil else { return nil }
            lines[host]?.members[task]?.connections = connections
            if lines[host]?.trying == task, !isTrying { lines[host]?.trying = nil }
            if isTrying, lines[host]?.trying == nil { lines[host]?.trying = task }
            guard let line = lines[host] else { return nil }
            guard line.members.count <= Self.maximumShared else {
                return PathView(
                    received: line.members[task]?.progress.transferredBytes ?? 0, others: 0, capacity: nil,
                    mayTry: false)
            }
            var received = line.gone
            var all = 0
            for member in line.members.values {
                received &+= member.progress.transferredBytes &- member.before
                all += member.connections
            }
            return PathView(
                received: received, others: all - connections,
                capacity: now - line.measuredAt <= Self.memory ? line.capacity : nil,
                mayTry: line.trying == nil || line.trying == task)
        }
    }

    /// Records the capacity that a download has measured.
    func record(_ capacity: PathCapacity, at host: String, now: Int64) {
        lines.withLock { lines in
            guard lines[host] != nil else { return }
            lines[host]?.capacity = capacity
            lines[host]?.measuredAt = now
        }
    }

    /// Records that a host serves one connection of a download, and lets others wait.
    ///
    /// - Returns: the time until which that is remembered.
    func recordSingleService(at host: String, now: Int64) -> Int64 {
        lines.withLock { lines in
            if lines[host] == nil, lines.count >= Self.limit { Self.forget(&lines, now) }
            lines[host, default: Line()].servesOneUntil = now + Self.memory
        }
        return now + Self.memory
    }

    /// Returns the time until which a host gets one connection of a download only; `nil` if it may have more.
    func singleService(at host: String, now: Int64) -> Int64? {
        lines.withLock { $0[host]?.servesOneUntil }.flatMap { $0 > now ? $0 : nil }
    }

    /// Removes idle hosts to make room: those with expired capacities, otherwise the one with the oldest.
    private static func forget(_ lines: inout [String: Line], _ now: Int64) {
        let idle = lines.filter { $0.value.members.isEmpty }
        for (host, line) in idle where now - line.rememberedAt > memory { lines[host] = nil }
        guard lines.count >= limit, let oldest = idle.min(by: { $0.value.rememberedAt < $1.value.rememberedAt }) else {
            return
        }
        lines[oldest.key] = nil
    }
}
