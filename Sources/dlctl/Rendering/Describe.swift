import TaskModel

/// Text for people to read, not for scripts to parse.
enum Describe {
    /// Formats a duration like a clock: `0:14`, `1:02:03`, `3d 04h`.
    static func clock(seconds: Int64) -> String {
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let seconds = max(0, seconds)
        if seconds < 3600 { return "\(seconds / 60):\(two(seconds % 60))" }
        if seconds < 86_400 { return "\(seconds / 3600):\(two(seconds / 60 % 60)):\(two(seconds % 60))" }
        return "\(seconds / 86_400)d \(two(seconds / 3600 % 24))h"
    }

    /// Formats a duration with units: `840 ms`, `14 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`.
    static func span(milliseconds: Milliseconds) -> String {
        let milliseconds = max(0, milliseconds)
        if milliseconds < 1000 { return "\(milliseconds) ms" }
        let seconds = milliseconds.addingClamped(500) / 1000
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
        if seconds < 86_400 { return "\(seconds / 3600) h \(seconds / 60 % 60) min" }
        return "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
    }

    static func rate(_ bytesPerSecond: Int64) -> String { ByteSize.describe(bytesPerSecond) + "/s" }

    /// Returns the whole per cent, rounded down so that 100 means complete; `nil` if `total` is not positive.
    static func percent(_ done: Int64, of total: Int64) -> Int? {
        guard total > 0 else { return nil }
        return Int(Double(min(max(0, done), total)) / Double(total) * 100)
    }

    /// Returns the task's file name if known, otherwise the name that its URL suggests.
    static func name(_ task: TaskStatus) -> String {
        Escape.visible(task.name ?? FileName.fromURL(task.url))
    }

    /// Returns the state with its explanation: `active 43%`, `name does not resolve, 4th try in 3 s`, `failed: disk
    /// full`.
    ///
    /// - Parameters:
    ///   - namesState: whether `waiting`, `queued` or `active` precedes the explanation.
    ///   - clock: formats a point in time; by default ``Clock/brief(_:now:)``.
    static func state(
        _ task: TaskStatus, now: Milliseconds, namesState: Bool = false,
        clock: ((Milliseconds) -> String)? = nil
    ) -> String {
        switch task.state {
        case .active:
            if task.phase == .verifying || task.phase == .publishing { return task.phase?.rawValue ?? "active" }
            let stall = stall(task, now: now)
            if task.phase == .connecting { return "connecting" + (stall.map { ", \($0)" } ?? "") }
            guard let stall else { return "active" + share(task) }
            return namesState ? "active\(share(task)): \(stall)" : stall
        case .waiting, .queued:
            let words = Waiting(task).words(now: now, clock: clock ?? { Clock.brief($0, now: now) })
            return namesState && task.reason != nil ? "\(task.state.rawValue): \(words)" : words
        case .paused:
            if let reason = task.reason, reason != .user {
                return "paused: \(Cause.phrase(pausedFor: reason, task.error))"
            }
            return "paused" + share(task)
        case .failed: return "failed" + (task.error.map { ": \(Cause.phrase($0))" } ?? "")
        case .completed where wasThere(task): return "completed, was there"
        case .completed, .cancelled: return task.state.rawValue + (task.reason.map { ", \($0.rawValue)" } ?? "")
        }
    }

    /// The time without a byte from which a transfer is told to stand still, in milliseconds.
    private static let patience: Milliseconds = 5_000

    /// Returns since when no byte came and what happens next: `no data for 40 s, reconnects in 20 s`; `nil` while bytes
    /// come.
    static func stall(_ task: TaskStatus, now: Milliseconds) -> String? {
        guard task.state == .active, let since = task.idleSince else { return nil }
        let idle = now.subtractingClamped(since)
        guard idle >= patience else { return nil }
        let next = task.reconnectsAt.map { moment in
            let left = moment.subtractingClamped(now)
            return left > 0
                ? ", reconnects in \(span(milliseconds: left.addingClamped(999) / 1000 * 1000))" : ", reconnects now"
        }
        return "no data for \(span(milliseconds: idle / 1000 * 1000))" + (next ?? "")
    }

    private static func share(_ task: TaskStatus) -> String {
        task.bytesTotal.flatMap { percent(task.bytesDone, of: $0) }.map { " \($0)%" } ?? ""
    }

    /// Returns in one line why a task that was waited for did not complete.
    static func ending(_ task: TaskStatus) -> String {
        // If the reason and the error have the same word, it is shown once.
        let isReason = task.error?.code.rawValue == task.reason?.rawValue
        let message = task.error.map { LongURL.shortened(in: $0.message) } ?? ""
        let error = task.error.map { isReason ? ": \(message)" : ": \($0.code): \(message)" } ?? ""
        switch task.state {
        case .failed: return "task \(task.id) failed\(error)"
        case .cancelled: return "task \(task.id) was cancelled"
        case .paused:
            let remedy = remedy(task).map { "; \($0)" } ?? ""
            // The reason stands for the code.
            let cause = task.error == nil ? "" : ": \(message)"
            return "task \(task.id) is paused: \(task.reason?.rawValue ?? "user")\(cause)\(remedy)"
        default: return "task \(task.id) is \(task.state.rawValue)"
        }
    }

    /// Returns the user action that lets the task continue, or `nil` if the reason is sufficient.
    static func remedy(_ task: TaskStatus) -> String? {
        guard task.state == .paused else { return nil }
        return switch task.reason {
        case .urlExpired: remedyForExpired("\(task.id)") + " (downloaded bytes are kept)"
        case .sourceChanged where task.error?.tellsOfMissingSource == true:
            "put the file back, then: dlctl resume \(task.id)"
        case .sourceChanged where task.error?.code == .sourceLost:
            "its owner can pass the file again: dlctl resume \(task.id)"
        case .sourceChanged: "to send the changed file: dlctl resume \(task.id)"
        // The message names the setting.
        case .auth where task.error?.message.hasPrefix("the proxy ") == true: nil
        case .auth: task.id.loginAdvice(task.url)
        default: nil
        }
    }

    /// The effect of `resume` and `retry` where the server has not said that it sends ranges.
    static let beginsAgain = "probably begins again from 0: the server does not offer to continue a file"

    /// Whether a download completed without a transfer because its file was there, as with `--on-conflict skip`.
    static func wasThere(_ task: TaskStatus) -> Bool {
        task.kind == .download && task.state == .completed && task.reason == nil && task.bytesDone > 0
            && task.bytesFetched == 0
    }

    /// Returns why a task failed and what to do about it, or why nothing was fetched; `nil` for other tasks.
    static func outcome(_ task: TaskStatus) -> String? {
        if wasThere(task) { return "a file of its name was there, and nothing was fetched" }
        guard task.state == .failed, let error = task.error else { return nil }
        return "\(Cause.phrase(error)); \(FailureAdvice.text(for: error, tasks: [task.id]))"
    }

    static func remedyForExpired(_ id: String) -> String { "give it a new URL: dlctl set \(id) --url NEW" }

    /// Returns `1 task`, `3 tasks`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}

extension Describe {
    /// Returns the tasks by state in life-cycle order: `3 queued, 1 active, 7 completed`.
    static func counts(_ tasks: [String: Int]) -> String {
        let known = TaskState.allCases.map(\.rawValue)
        let others = tasks.keys.filter { !known.contains($0) }.sorted()
        let words = (known + others).compactMap { state in
            tasks[state].flatMap { $0 > 0 ? "\($0) \(state)" : nil }
        }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }
}
