/// The mode of the scheduler, which decides whether it starts tasks.
enum SchedulerMode {
    case running
    /// The schedule has paused all tasks.
    case paused(SchedulePause)
    /// The daemon ends. A pause that the schedule has set is still shown.
    case stopping(SchedulePause?)

    var mayStart: Bool { if case .running = self { true } else { false } }

    var isStopping: Bool { if case .stopping = self { true } else { false } }

    /// The current pause by the schedule.
    var pause: SchedulePause? {
        switch self {
        case .running: nil
        case .paused(let pause): pause
        case .stopping(let pause): pause
        }
    }

    mutating func setPause(_ pause: SchedulePause?) {
        self = isStopping ? .stopping(pause) : pause.map { .paused($0) } ?? .running
    }

    mutating func stop() { self = .stopping(pause) }
}
