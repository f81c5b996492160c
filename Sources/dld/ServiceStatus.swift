import Synchronization
import TaskModel

/// The status text of the daemon that `systemctl status` shows (sd_notify(3), `STATUS=`).
final class ServiceStatus: Sendable {
    /// The problems that need an administrator.
    enum Condition: Sendable {
        case good
        /// The problems, a line for each.
        case problems([String])
        /// The reason why the current configuration file was refused.
        case refused(String)
    }

    /// The tasks and the rates at a moment.
    struct Work: Sendable, Equatable {
        var tasks: [TaskState: Int] = [:]
        /// The rates in bytes per second.
        var downloadRate: Int64 = 0
        var uploadRate: Int64 = 0
    }

    private struct State {
        var work = Work()
        var condition = Condition.good
        var sent = ""
    }

    private let state = Mutex(State())
    private let send: @Sendable (String) -> Void

    /// - Parameter send: sends assignments to the service manager.
    init(send: @escaping @Sendable (String) -> Void = { ServiceManager.notify($0) }) { self.send = send }

    /// Sets what needs an administrator, and reports that the daemon is ready.
    func ready(_ condition: Condition) {
        let text = state.withLock { state in
            state.condition = condition
            state.sent = Self.text(state.work, condition)
            return state.sent
        }
        send("READY=1\nSTATUS=\(text)")
    }

    /// Sets the tasks, the rates and the present problems. The service manager is told if the text changes.
    ///
    /// - Parameter problems: a line for each; `nil` keeps the known ones.
    func update(_ work: Work, problems: [String]? = nil) {
        let text = state.withLock { state -> String? in
            state.work = work
            // Only another reload ends the refusal of a configuration.
            switch state.condition {
            case .refused: break
            case .good, .problems: if let problems { state.condition = .problems(problems) }
            }
            let text = Self.text(work, state.condition)
            guard text != state.sent else { return nil }
            state.sent = text
            return text
        }
        if let text { send("STATUS=\(text)") }
    }

    static func text(_ work: Work, _ condition: Condition) -> String {
        let base = text(work)
        switch condition {
        case .good: return base
        case .problems(let problems):
            guard let first = problems.first else { return base }
            let others = problems.count > 1 ? " (and \(problems.count - 1) more)" : ""
            return "\(base), but \(LogText.printable(first))\(others)"
        case .refused(let reason):
            return "\(base) with the previous configuration; the new one is invalid: \(LogText.printable(reason))"
        }
    }

    /// Returns a text such as `3 active, 120 queued, 41 MiB/s`; `Ready` if no task is open.
    private static func text(_ work: Work) -> String {
        let counts = [(TaskState.active, "active"), (.queued, "queued"), (.waiting, "waiting"), (.paused, "paused")]
        var parts = counts.compactMap { state, word -> String? in
            guard let count = work.tasks[state], count > 0 else { return nil }
            return "\(count) \(word)"
        }
        if parts.isEmpty { return "Ready" }
        switch (work.downloadRate, work.uploadRate) {
        case (0, 0): break
        case (let rate, 0): parts.append(BinaryRate.text(rate))
        case (0, let rate): parts.append("\(BinaryRate.text(rate)) up")
        case (let down, let up): parts += ["\(BinaryRate.text(down)) down", "\(BinaryRate.text(up)) up"]
        }
        return parts.joined(separator: ", ")
    }
}

/// Rates for people, in binary units with two or three significant digits.
enum BinaryRate {
    static func text(_ rate: Int64) -> String {
        var (value, unit) = (rate, "B")
        var tenths: Int64 = 0
        for larger in ["KiB", "MiB", "GiB", "TiB"] where value >= 1_000 {
            tenths = value % 1_024 * 10 / 1_024
            (value, unit) = (value / 1_024, larger)
        }
        return unit == "B" || value >= 10 ? "\(value) \(unit)/s" : "\(value).\(tenths) \(unit)/s"
    }
}
