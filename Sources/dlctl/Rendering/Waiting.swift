import ControlProtocol
import TaskModel

/// The reason why a task does not run, and when that changes: `name does not resolve, 4th try in 15 s`.
struct Waiting {
    /// The `reason` of the task.
    var reason: TaskReason?
    /// The word of a reason unknown to this program.
    var unknownReason: String?
    var notBefore: Milliseconds?
    var error: TaskFailure?
    /// The number of attempts so far; `nil` for a group of tasks.
    var attempts: Int?
    /// The task that must complete first, if known.
    var follows: TaskID?
    /// Whether other tasks wait for the same reason.
    var isOneOfMany = false
    /// Whether the task is ready and something else prevents its start.
    var isReady = false

    init(_ task: TaskStatus) {
        reason = task.reason
        notBefore = task.notBefore
        error = task.error
        attempts = task.attempts
        follows = task.afterTask
        isReady = task.state == .queued
    }

    /// Creates the reason that several tasks share.
    init(_ cause: DaemonStatus.Cause) {
        reason = TaskReason(rawValue: cause.reason)
        unknownReason = cause.reason
        notBefore = cause.notBefore
        isOneOfMany = cause.tasks > 1
        error = cause.code.map { TaskFailure(code: $0, message: cause.message ?? "") }
    }

    /// Returns the reason in words.
    ///
    /// - Parameter clock: formats a point in time.
    func words(now: Milliseconds, clock: (Milliseconds) -> String) -> String {
        let until = notBefore.map { " until \(clock($0))" } ?? ""
        switch reason {
        case nil:
            guard let unknownReason else { return isReady ? "queued" : "waiting" }
            return Cause.phrase(unknownReason, error) + nextCheck(now)
        case .scheduled where isReady: return "paused by the schedule\(until)"
        case .hostLimit:
            // A host that refused too often, or requested a delay, is not contacted for a while.
            return delay(now).map { "host is on hold, next try\($0)" } ?? "waits for a free connection to its host"
        case .ownerLimit: return "owner's limit of active tasks"
        case .retry:
            let cause = error.map { Cause.phrase($0) } ?? "failed"
            let next = attempts.map { Self.ordinal($0 + 1) } ?? "next"
            return cause + (delay(now).map { ", \(next) try\($0)" } ?? "")
        case .scheduled:
            return notBefore.map {
                isOneOfMany ? "not started yet, the first starts at \(clock($0))" : "starts at \(clock($0))"
            }
                ?? "starts later"
        case .network: return "waits for the network" + nextCheck(now)
        case .dependency: return follows.map { "after task \($0)" } ?? "after another task"
        case .some(let other): return Cause.phrase(other.rawValue, error) + nextCheck(now)
        }
    }

    private func nextCheck(_ now: Milliseconds) -> String { delay(now).map { ", next check\($0)" } ?? "" }

    /// Returns ` in 15 s` in whole seconds, so that a countdown does not end in milliseconds.
    private func delay(_ now: Milliseconds) -> String? {
        notBefore.map { " in \(Describe.span(milliseconds: max(1000, ($0 - now + 999) / 1000 * 1000)))" }
    }

    /// Returns an ordinal: `1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`.
    static func ordinal(_ number: Int) -> String {
        switch (number % 10, number % 100) {
        case (_, 11...13): "\(number)th"
        case (1, _): "\(number)st"
        case (2, _): "\(number)nd"
        case (3, _): "\(number)rd"
        default: "\(number)th"
        }
    }
}
