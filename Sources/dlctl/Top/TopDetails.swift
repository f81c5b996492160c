import TaskModel
import TerminalScreen

/// The details of a task as lines: facts, the map of its segments, its connections and its attempts.
struct TopDetails {
    var detail: TaskDetail
    var width: Int
    var unicode: Bool

    func lines(now: Milliseconds) -> [StyledLine] {
        let task = detail.status
        let facts = Show.lines(task, now: now)
        var lines = [StyledLine(facts.first ?? "", .bold)]
        lines += facts.dropFirst().map { StyledLine($0) }
        if let words = detail.waitingFor { lines.append(StyledLine("  " + Escape.visible(words), .colour(.yellow))) }
        if detail.live == nil, detail.history == nil {
            lines += [StyledLine(), StyledLine("  no details from this daemon", .dim)]
        }
        if let live = detail.live { lines += map(live) + connections(live.connections) + limits(live.rateLimits) }
        if let history = detail.history { lines += attempts(history, now: now) }
        return lines.map { $0.fitted(width) }
    }

    private func map(_ live: LiveTransfer) -> [StyledLine] {
        guard let total = detail.status.bytesTotal, total > 0 else { return [] }
        let map = SegmentMap(
            segments: live.segments, connections: live.connections, total: total, unicode: unicode)
        let width = max(8, min(200, self.width - 4))
        let title =
            "segments: \(live.segments.count), each sign is \(ByteSize.describe(max(1, total / Int64(width * 2))))"
        return [StyledLine(), StyledLine("  " + title, .bold)]
            + map.lines(width: width, height: 2).map { StyledLine("  " + $0, .colour(.cyan)) }
    }

    private func connections(_ connections: [LiveConnection]) -> [StyledLine] {
        guard !connections.isEmpty else { return [] }
        let columns = [
            Table.Column(title: "CONNECTION"), Table.Column(title: "FROM", alignsRight: true),
            Table.Column(title: "AT", alignsRight: true), Table.Column(title: "TO", alignsRight: true),
            Table.Column(title: "RATE", alignsRight: true),
        ]
        let rows = connections.map { connection in
            [
                connection.address.map(Escape.visible) ?? "-", ByteSize.describe(connection.first),
                ByteSize.describe(connection.next), connection.end.map { ByteSize.describe($0) } ?? "end",
                Describe.rate(connection.rate),
            ]
        }
        return table(columns, rows)
    }

    private func limits(_ limits: [LiveRateLimit]) -> [StyledLine] {
        guard !limits.isEmpty else { return [] }
        let words = limits.map { "\($0.scope.rawValue) \(Describe.rate($0.rate))" }
        return [StyledLine(), StyledLine("  rate limits: " + words.joined(separator: ", "))]
    }

    private func attempts(_ history: [TaskAttempt], now: Milliseconds) -> [StyledLine] {
        guard !history.isEmpty else { return [] }
        let columns = [
            Table.Column(title: "ATTEMPT"), Table.Column(title: "TIME", alignsRight: true),
            Table.Column(title: "SERVER", omission: 1), Table.Column(title: "BYTES", alignsRight: true),
            Table.Column(title: "HTTP", omission: 3), Table.Column(title: "NAME/CONNECT/TLS/FIRST ms", omission: 2),
            Table.Column(title: "RESULT", minimum: 8),
        ]
        let rows = history.reversed().map { attempt in
            let steps = [attempt.name, attempt.connect, attempt.tls, attempt.firstByte]
            let http = [attempt.httpVersion.map(Escape.visible), attempt.status.map { "\($0)" }].compactMap(\.self)
            return [
                Clock.local(attempt.startedAt),
                Describe.span(milliseconds: (attempt.endedAt ?? now).subtractingClamped(attempt.startedAt)),
                attempt.address.map(Escape.visible) ?? "-", ByteSize.describe(attempt.bytes),
                http.isEmpty ? "-" : http.joined(separator: " "),
                steps.map { $0.map { "\($0)" } ?? "-" }.joined(separator: "/"),
                attempt.endedAt == nil
                    ? "running" : attempt.error.map { Escape.visible("\($0.code): \($0.message)") } ?? "done",
            ]
        }
        return table(columns, rows)
    }

    private func table(_ columns: [Table.Column], _ rows: [[String]]) -> [StyledLine] {
        var table = Table(columns, width: max(20, width - 2))
        let lines = table.page(rows).map { StyledLine("  " + $0) }
        return [StyledLine()] + lines
    }
}
