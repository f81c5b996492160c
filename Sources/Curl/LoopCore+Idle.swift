import CCurl

/// What a loop lets go of when it has had nothing to do for long.
///
/// libcurl looks at the connections that it keeps only when the next transfer begins: until then those that servers have
/// closed would stay open here.
extension LoopCore {
    /// Notes that the last exchange has ended.
    func noteIdle() {
        idleSince = MonotonicTime.now()
        if idleTimer == nil { watchIdleness(for: idlePatience) }
    }

    private func watchIdleness(for milliseconds: Int64) {
        idleTimer = after(milliseconds: milliseconds) { [unowned self] in
            idleTimer = nil
            // Otherwise the end of the last exchange comes here again.
            guard exchanges.isEmpty else { return }
            guard streams.byID.isEmpty, leftBehind.isEmpty else { return watchIdleness(for: idlePatience) }
            let idle = idleSince.milliseconds(until: MonotonicTime.now())
            guard idle >= idlePatience else { return watchIdleness(for: idlePatience - idle) }
            closeConnections()
        }
    }

    /// Closes all connections, none of which is in use: libcurl has no other way than to give up what holds them.
    private func closeConnections() {
        // Without memory for another one this one stays.
        guard var fresh = try? MultiHandle(), (try? attach(fresh)) != nil else { return }
        swap(&multi, &fresh)
        // What libcurl still says while it closes its sockets must find nobody.
        _ = ccurl_multi_set_socket_callback(fresh.raw, nil, nil)  // fails within a callback alone
        _ = ccurl_multi_set_timer_callback(fresh.raw, nil, nil)  // as above
        curlDeadline = nil
    }

    /// Lets a multi handle speak to this loop.
    func attach(_ multi: borrowing MultiHandle) throws(CurlError) {
        multi.setMaximumIdleConnections(Self.idleConnections)
        let context = Unmanaged.passUnretained(self).toOpaque()
        try CurlError.check(ccurl_multi_set_socket_callback(multi.raw, Self.socketChanged, context))
        try CurlError.check(ccurl_multi_set_timer_callback(multi.raw, Self.timerChanged, context))
    }
}
