import CCurl

/// The time for which a loop has had no exchange.
struct LoopIdleness {
    /// The time without an exchange after which connections are closed, in milliseconds.
    let timeout: Int64
    /// The time at which the last exchange ended.
    var since = MonotonicTime.now()
    /// The timer that checks how long ago that is.
    var timer: Int?

    init(timeout: Int64) { self.timeout = timeout }
}

/// The closing of connections after a loop has been idle for long.
///
/// libcurl checks the connections that it keeps only when the next transfer starts. Until then, those that servers have
/// closed would stay open here.
extension LoopCore {
    /// Records that the last exchange has ended.
    func recordIdle() {
        idleness.since = MonotonicTime.now()
        if idleness.timer == nil { watchIdleness(for: idleness.timeout) }
    }

    private func watchIdleness(for milliseconds: Int64) {
        idleness.timer = after(milliseconds: milliseconds) { [unowned self] in
            idleness.timer = nil
            // Otherwise the end of the last exchange starts the timer again.
            guard exchanges.isEmpty else { return }
            guard streams.byID.isEmpty, leftBehind.isEmpty else { return watchIdleness(for: idleness.timeout) }
            let idle = idleness.since.milliseconds(until: MonotonicTime.now())
            guard idle >= idleness.timeout else { return watchIdleness(for: idleness.timeout - idle) }
            closeConnections()
        }
    }

    /// Closes all connections, none of which is in use. libcurl offers no other way than to free the multi handle that
    /// holds them.
    private func closeConnections() {
        // If memory for another multi handle is lacking, this one stays.
        guard var fresh = try? MultiHandle(), (try? attach(fresh)) != nil else { return }
        swap(&multi, &fresh)
        // Callbacks that libcurl makes while it closes its sockets must not reach the loop.
        _ = ccurl_multi_set_socket_callback(fresh.raw, nil, nil)  // fails only within a callback
        _ = ccurl_multi_set_timer_callback(fresh.raw, nil, nil)  // as above
        deadlines.curl = nil
    }

    /// Sets the callbacks by which a multi handle notifies this loop.
    func attach(_ multi: borrowing MultiHandle) throws(CurlError) {
        multi.setMaximumIdleConnections(Self.idleConnections)
        let context = Unmanaged.passUnretained(self).toOpaque()
        try CurlError.check(ccurl_multi_set_socket_callback(multi.raw, Self.socketChanged, context))
        try CurlError.check(ccurl_multi_set_timer_callback(multi.raw, Self.timerChanged, context))
    }
}
