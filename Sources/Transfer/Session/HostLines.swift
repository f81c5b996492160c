import Synchronization

/// The lines to the hosts that downloads fetch from: what comes over each now, and what it has taught.
///
/// One for each session, in memory. Asked once for each look of a download, never for each chunk.
final class HostLines: Sendable {
    /// What a download is told of its line.
    struct View {
        /// Bytes that came over all downloads from the host.
        var received: Int64
        /// Connections of the other downloads.
        var others: Int
        var lesson: LineLesson?
        /// No other download tries out a number of connections.
        var mayTry: Bool
    }

    private struct Member {
        let progress: TransferProgress
        /// Bytes that its request had received when it came.
        let before: Int64
        var connections = 1
    }

    private struct Line {
        var members: [Int: Member] = [:]
        /// Bytes of downloads that have left.
        var gone: Int64 = 0
        /// The download that tries something.
        var trying: Int?
        var lesson: LineLesson?
        /// Milliseconds of the session's clock.
        var taughtAt: Int64 = 0
    }

    private let lines = Mutex<[String: Line]>([:])

    /// Milliseconds that a lesson is remembered for.
    static let memory: Int64 = 600_000
    /// Hosts that are remembered.
    static let limit = 256
    /// Downloads from one host above which each goes by itself, and tries nothing.
    private static let largestCompany = 64

    /// A download begins to receive from `host`.
    func enter(_ task: Int, at host: String, progress: TransferProgress, now: Int64) {
        lines.withLock { lines in
            if lines[host] == nil, lines.count >= Self.limit { Self.forget(&lines, now) }
            lines[host, default: Line()].members[task] = Member(progress: progress, before: progress.transferredBytes)
        }
    }

    func leave(_ task: Int, at host: String) {
        lines.withLock { lines in
            guard let member = lines[host]?.members.removeValue(forKey: task) else { return }
            lines[host]?.gone &+= member.progress.transferredBytes &- member.before
            if lines[host]?.trying == task { lines[host]?.trying = nil }
            if lines[host]?.members.isEmpty == true, lines[host]?.lesson == nil { lines[host] = nil }
        }
    }

    /// - Parameters:
    ///   - connections: of the download.
    ///   - isTrying: it tries out a number of connections, which one download at a host does at a time.
    /// - Returns: the state of the line, with this download's own bytes alone where it is not known there.
    func look(_ task: Int, at host: String, connections: Int, isTrying: Bool, now: Int64) -> View? {
        lines.withLock { lines in
            guard lines[host]?.members[task] != nil else { return nil }
            lines[host]?.members[task]?.connections = connections
            if lines[host]?.trying == task, !isTrying { lines[host]?.trying = nil }
            if isTrying, lines[host]?.trying == nil { lines[host]?.trying = task }
            guard let line = lines[host] else { return nil }
            guard line.members.count <= Self.largestCompany else {
                return View(
                    received: line.members[task]?.progress.transferredBytes ?? 0, others: 0, lesson: nil, mayTry: false)
            }
            var received = line.gone
            var all = 0
            for member in line.members.values {
                received &+= member.progress.transferredBytes &- member.before
                all += member.connections
            }
            return View(
                received: received, others: all - connections,
                lesson: now - line.taughtAt <= Self.memory ? line.lesson : nil,
                mayTry: line.trying == nil || line.trying == task)
        }
    }

    /// A download from `host` has found something out.
    func teach(_ lesson: LineLesson, at host: String, now: Int64) {
        lines.withLock { lines in
            guard lines[host] != nil else { return }
            lines[host]?.lesson = lesson
            lines[host]?.taughtAt = now
        }
    }

    /// Makes room: what is too old goes, otherwise what was learnt first.
    private static func forget(_ lines: inout [String: Line], _ now: Int64) {
        let idle = lines.filter { $0.value.members.isEmpty }
        for (host, line) in idle where now - line.taughtAt > memory { lines[host] = nil }
        guard lines.count >= limit, let oldest = idle.min(by: { $0.value.taughtAt < $1.value.taughtAt }) else { return }
        lines[oldest.key] = nil
    }
}
