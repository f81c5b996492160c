/// The times at which a loop has to act although no socket is ready.
struct LoopDeadlines {
    /// The time at which libcurl must be called.
    var curl: MonotonicTime?
    var stallCheck: MonotonicTime?
    /// The time of the watchdog's next check.
    var watch: MonotonicTime?
    /// The latest end of this turn's wait; `nil` if the wait has no deadline.
    var waitEnd: MonotonicTime?

    /// Returns the earliest time, the next timer's included; `nil` if nothing is due.
    func earliest(timer: MonotonicTime?) -> MonotonicTime? {
        var earliest = curl
        if let stallCheck { earliest = min(earliest ?? stallCheck, stallCheck) }
        if let watch { earliest = min(earliest ?? watch, watch) }
        if let timer { earliest = min(earliest ?? timer, timer) }
        return earliest
    }
}
