import TaskModel
import TerminalScreen

/// The details of a task as lines: facts, the map of its segments, its connections and its attempts.
struct TopDetails {
    var detail: TaskDetail
    var width: Int
    var unicode: Bool

    func lines(now: Milliseconds) -> [StyledLine] {
        let task = detail.status
        let facts = Show.lines(task, now: now, history: detail.history, isResumable: detail.resumable)
        var lines = [StyledLine(facts.first ?? "", .bold)]
        lines += facts.dropFirst().map { StyledLine($0) }
        if let words = detail.waitingFor { lines.append(StyledLine("  " + Escape.visible(words), .colour(.yellow))) }
        if let live = detail.live { lines += map(live) + connections(live.connections) + limits(live.rateLimits) }
        if !detail.history.isEmpty {
            lines += table(
                AttemptTable.lines(detail.history, of: task.state, now: now, width: max(20, width - 2)))
        }
        return lines.map { $0.fitted(width) }
    }

    private func map(_ live: LiveTransfer) -> [StyledLine] {
        guard let total = detail.status.bytesTotal, total > 0 else { return [] }
        let segments = detail.transferredSegments ?? []
        let width = max(8, min(200, self.width - 4))
        let title = "map, one character for \(ByteSize.describe(max(1, total / Int64(width * 2))))"
        return [StyledLine(), StyledLine("  " + title, .bold)]
            + SegmentMap(width: width, style: .init(colour: false, unicode: unicode))
            .lines(2, segments, live.connections, total: total).map { StyledLine("  " + $0, .colour(.cyan)) }
    }

    private func connections(_ connections: [LiveConnection]) -> [StyledLine] {
        connections.isEmpty
            ? [] : table(AttemptTable.lines(connections, of: detail.status.kind, width: max(20, width - 2)))
    }

    private func limits(_ limits: [LiveRateLimit]) -> [StyledLine] {
        guard !limits.isEmpty else { return [] }
        let words = limits.map { "\($0.scope.rawValue) \(Describe.rate($0.rate))" }
        return [StyledLine(), StyledLine("  rate limits: " + words.joined(separator: ", "))]
    }

    private func table(_ lines: [String]) -> [StyledLine] {
        [StyledLine()] + lines.map { StyledLine("  " + $0) }
    }
}
