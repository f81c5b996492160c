import TaskModel

/// A line of text for an event.
enum EventLine {
    /// Returns the time, the task, the type and what happened: `2026-03-01 14:05:09      12  completed  a.iso, 700 MiB`.
    static func text(_ event: TaskEvent) -> String {
        let id = DisplayWidth.pad(event.id.map(\.description) ?? "", 7, right: true)
        let type = DisplayWidth.pad(event.type.rawValue, 9)
        return "\(event.at == 0 ? DisplayWidth.pad("", 19) : Clock.local(event.at)) \(id)  \(type)  \(words(event))"
    }

    private static func words(_ event: TaskEvent) -> String {
        let name = (event.kind == .upload ? "↑ " : "") + name(event)
        switch event.type {
        case .gap: return "events before this are not in the journal; it goes on after number \(event.sequence)"
        case .batchFinished:
            guard let totals = event.totals else { return batch(event) }
            let counts = Describe.counts([
                TaskState.completed.rawValue: totals.completed, TaskState.failed.rawValue: totals.failed,
                TaskState.cancelled.rawValue: totals.cancelled,
            ])
            return "\(batch(event)): \(counts), \(ByteSize.describe(totals.bytesDone))"
        case .progress: return "\(name), \(progress(event))"
        case .completed where event.reason == .unchanged: return "\(name), unchanged"
        case .completed: return name + (event.bytesDone.map { ", \(ByteSize.describe($0))" } ?? "")
        case .failed, .waiting: return name + cause(event)
        case .paused: return name + (event.reason == .user ? "" : cause(event))
        case .added: return name + (event.state == .paused ? ", paused" : "")
        case .started, .updated, .resumed, .cancelled, .retried, .removed: return name
        }
    }

    private static func batch(_ event: TaskEvent) -> String { "batch \(Escape.visible(event.batch ?? ""))" }

    private static func name(_ event: TaskEvent) -> String {
        let name = event.path.map(FileName.last) ?? event.url.map(FileName.fromURL) ?? "a task that no longer exists"
        return Escape.visible(name)
    }

    private static func cause(_ event: TaskEvent) -> String {
        if event.state == .paused, let reason = event.reason {
            return ": " + Escape.visible(Cause.phrase(pausedFor: reason, event.error))
        }
        if let error = event.error { return ": \(Escape.visible(Cause.phrase(error)))" }
        return event.reason.map { ": " + Cause.phrase($0.rawValue, nil) } ?? ""
    }

    private static func progress(_ event: TaskEvent) -> String {
        var words: [String] = []
        if let done = event.bytesDone {
            let percent = event.bytesTotal.flatMap { Describe.percent(done, of: $0) }.map { "\($0)% of " } ?? ""
            words.append(percent + ByteSize.describe(event.bytesTotal ?? done))
        }
        if let rate = event.progress?.rate { words.append(Describe.rate(rate)) }
        if let eta = event.progress?.eta { words.append("\(Describe.clock(seconds: eta)) left") }
        return words.joined(separator: ", ")
    }
}
