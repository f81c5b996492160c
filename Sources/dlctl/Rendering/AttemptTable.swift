import TaskModel

/// The tables of a task's attempts and connections in `show`.
enum AttemptTable {
    /// Returns the attempts as the lines of a table, the newest last.
    ///
    /// - Parameters:
    ///   - width: the width of the terminal; `nil` to cut nothing off.
    ///   - state: the state of the task, which tells how the last attempt ended.
    static func lines(_ history: [TaskAttempt], of state: TaskState, now: Milliseconds, width: Int?) -> [String] {
        var table = Table(
            [
                .init(title: "attempt"), .init(title: "took", alignsRight: true),
                .init(title: "bytes", alignsRight: true), .init(title: "name", alignsRight: true, omission: 1),
                .init(title: "conn", alignsRight: true, omission: 2),
                .init(title: "tls", alignsRight: true, omission: 3),
                .init(title: "first", alignsRight: true, omission: 4),
                .init(title: "result"), .init(title: "address", minimum: 9, isCutInMiddle: true),
            ], width: width)
        let page = table.page(
            history.enumerated().map { index, attempt in
                [
                    moment(attempt.startedAt, now: now),
                    attempt.endedAt.map { duration($0.subtractingClamped(attempt.startedAt)) } ?? "",
                    ByteSize.describe(attempt.bytes), duration(attempt.name), duration(attempt.connect),
                    duration(attempt.tls), duration(attempt.firstByte),
                    result(attempt, index == history.count - 1 ? state : nil),
                    Escape.visible(attempt.address ?? "-"),
                ]
            })
        return page
            + history.compactMap { attempt in
                attempt.note.map { note in
                    let line = "\(moment(attempt.startedAt, now: now))  \(Escape.visible(note))"
                    return width.map { DisplayWidth.fit(line, $0) } ?? line
                }
            }
    }

    /// Returns the connections of a task as the lines of a table.
    static func lines(_ connections: [LiveConnection], of kind: TaskKind, width: Int?) -> [String] {
        var table = Table(
            [
                .init(title: "connection", minimum: 9, isCutInMiddle: true), .init(title: "from", alignsRight: true),
                .init(title: "to", alignsRight: true),
                .init(title: kind == .upload ? "sent" : "received", alignsRight: true),
                .init(title: "rate", alignsRight: true),
            ], width: width)
        return table.page(
            connections.map { connection in
                [
                    Escape.visible(connection.address ?? "connecting"), ByteSize.describe(connection.first),
                    connection.end.map { ByteSize.describe($0) } ?? "end",
                    ByteSize.describe(max(0, connection.next.subtractingClamped(connection.first))),
                    Describe.rate(connection.rate),
                ]
            })
    }

    /// - Parameter state: the state that the attempt left the task in; `nil` for an earlier attempt. That one may have
    ///   been stopped, or have completed the task before a retry.
    private static func result(_ attempt: TaskAttempt, _ state: TaskState?) -> String {
        if let error = attempt.error { return Escape.visible(error.code.rawValue) }
        if attempt.endedAt == nil { return "running" }
        return switch state {
        case .completed: "completed"
        case .paused, .cancelled: "stopped"
        default: "ended"
        }
    }

    /// Returns `14:05:09` for a time on the present day, otherwise `2026-03-01 14:05`, in local time.
    private static func moment(_ moment: Milliseconds, now: Milliseconds) -> String {
        let (text, today) = (Clock.local(moment), Clock.local(now))
        return text.prefix(10) == today.prefix(10) ? String(text.dropFirst(11)) : String(text.dropLast(3))
    }

    /// Returns a duration in few columns: `12ms`, `3.4s`, `58s`, `12m`, `30h`; `-` if there is none.
    private static func duration(_ milliseconds: Milliseconds?) -> String {
        guard let milliseconds else { return "-" }
        let time = max(0, milliseconds)
        if time < 1_000 { return "\(time)ms" }
        if time < 10_000 { return "\(time / 1_000).\(time / 100 % 10)s" }
        if time < 120_000 { return "\(time / 1_000)s" }
        return time < 7_200_000 ? "\(time / 60_000)m" : "\(time / 3_600_000)h"
    }
}
