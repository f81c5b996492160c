/// The scheduler's own concurrent tasks: its periodic check, its alarm, and its watch of the network.
struct SchedulerTasks {
    typealias Work = Task<Void, Never>

    private var ticker: Work?
    private var alarm: Work?
    private var networkWatch: Work?

    /// Starts the periodic check, unless it is running.
    mutating func startTicker(_ make: () -> Work) {
        if ticker == nil { ticker = make() }
    }

    /// Records that the periodic check has ended by itself.
    mutating func tickerEnded() { ticker = nil }

    /// Replaces the alarm.
    mutating func setAlarm(_ work: Work?) {
        alarm?.cancel()
        alarm = work
    }

    /// Records that the alarm fires. Its task goes on with the work of the alarm, so it is not cancelled.
    mutating func alarmFired() { alarm = nil }

    /// Starts watching the network, unless that is under way.
    mutating func watchNetwork(_ make: () -> Work) {
        if networkWatch == nil { networkWatch = make() }
    }

    mutating func stop() {
        setAlarm(nil)
        ticker?.cancel()
        networkWatch?.cancel()
    }
}
