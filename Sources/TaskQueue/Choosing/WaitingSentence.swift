import TaskModel

/// The sentence that tells why a task does not run, and what happens next.
///
/// A value without I/O and clock.
struct WaitingSentence {
    /// The number of ready tasks that start before a task.
    enum Place: Sendable, Equatable {
        case exactly(Int)
        case moreThan(Int)
    }

    let record: TaskRecord
    let now: Milliseconds
    /// Returns the offset of local time from UTC at a moment, in seconds.
    let utcOffset: (Milliseconds) -> Int
    /// Whether the reader owns the task.
    let isOwn: Bool

    // MARK: Ready tasks

    /// Returns the sentence for a ready task.
    ///
    /// - Parameters:
    ///   - obstacle: the reason why the task is not running; `nil` where it starts next.
    ///   - place: the place of the task in the queue, if it is known.
    func text(_ obstacle: StartObstacle?, place: Place? = nil) -> String {
        switch obstacle {
        case nil: return "is about to start"
        case .end: return "the daemon is about to end; the task goes on when the daemon runs again"
        case .schedule(let until):
            return "paused by the schedule until " + (until.map(clock) ?? "the configuration changes")
        case .ownerLimit(let limit):
            let words = limit == 1 ? "1 active task is" : "\(limit) active tasks are"
            return "the owner's \(words) the limit (limits.active-tasks-per-owner); starts when one of them ends"
        case .heldHost(let held): return text(held)
        case .hostConnections(let host, let limit):
            return "waits for a free connection to \(host), which gets at most \(limit) (connections-per-host)"
        case .slots(let slots):
            return "waits for one of \(slots) slots (limits.active-tasks)" + (place.map { "; \(text($0))" } ?? "")
        }
    }

    private func text(_ held: HeldHost) -> String {
        let until = held.until.map { " until \(clock($0))" } ?? ""
        return switch held.cause {
        case .retryAfter: "host \(held.host) is on hold\(until), because it asked for a delay (Retry-After)"
        case .failures: "host \(held.host) is on hold\(until), because it failed"
        case .probe: "host \(held.host) is on hold while another task tries whether it works again"
        case .noRoute:
            "host \(held.host) cannot be reached from this machine"
                + (held.until.map { "; the next try is at \(clock($0))" } ?? "")
        }
    }

    private func text(_ place: Place) -> String {
        switch place {
        case .exactly(0): "it is the next one"
        case .exactly(1): "1 task is before it"
        case .exactly(let count): "\(count) tasks are before it"
        case .moreThan(let count): "more than \(count) tasks are before it"
        }
    }

    // MARK: Waiting and paused tasks

    /// Returns the sentence for a task that is waiting or paused; `nil` for other states.
    var text: String? {
        switch record.lifecycle.reason {
        case .retry: cause("waits after a failure") + next("the next try is")
        case .scheduled: record.lifecycle.notBefore.map { "starts at \(clock($0))" } ?? "starts later"
        case .network: cause("waits for the network") + next("the next check is")
        case .diskFull: cause("waits for disk space") + next("the next check is")
        case .disk: cause("waits for its directory") + next("the next check is")
        case .quota:
            "the quota of the owner's downloads is used up (limits.bytes-per-owner); goes on when there is room"
        case .dependency:
            "waits for \(record.specification.afterTask.map { "task \($0)" } ?? "another task") to complete"
        case .user: "paused by \(isOwn ? "you" : "a user"): \(command("resume"))" + start
        case .urlExpired: "the URL has expired; give it a new one: \(command("set")) --url NEW"
        case .auth where record.error?.message.hasPrefix("the proxy ") == true:
            "the proxy refuses access; give a proxy: \(command("set")) --proxy URL"
        case .auth:
            (record.error?.tellsOfMissingLogin == true ? "a login is needed" : "the server refuses access") + "; "
                + record.id.loginAdvice(record.specification.url)
        case .sourceChanged where record.error?.code == .sourceLost:
            "the open file was closed; its owner can pass it again: \(command("resume"))"
        case .sourceChanged where record.error?.tellsOfMissingSource == true:
            "the source file is gone; put it back, then: \(command("resume"))"
        case .sourceChanged: "the source file changed; to send it as it is now: \(command("resume"))"
        case .unchanged, .hostLimit, .ownerLimit, nil: nil
        }
    }

    private func cause(_ words: String) -> String {
        guard let message = record.error?.message, !message.isEmpty else { return words }
        return "\(words) (\(message))"
    }

    private func next(_ words: String) -> String {
        record.lifecycle.notBefore.map { "; \(words) at \(clock($0))" } ?? ""
    }

    /// The start time of a paused task that is still to come.
    private var start: String {
        guard let startAt = record.specification.startAt, startAt > now else { return "" }
        return "; it then starts at \(clock(startAt))"
    }

    private func command(_ name: String) -> String { "dlctl \(name) \(record.id)" }

    /// Returns local time: `14:05:09` on the same day, otherwise `2026-03-01 14:05:09`.
    private func clock(_ moment: Milliseconds) -> String {
        let text = LocalClock.text(moment, utcOffset: utcOffset(moment))
        let today = LocalClock.text(now, utcOffset: utcOffset(now))
        return text.prefix(10) == today.prefix(10) ? String(text.dropFirst(11)) : text
    }
}
