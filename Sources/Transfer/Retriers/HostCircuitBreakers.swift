/// A circuit breaker for each host that has failed, and the holds that servers request.
///
/// A host is scheme, name and port. After ``failureLimit`` failures in a row its breaker opens: the host receives no
/// requests for the base delay, then one request probes it. If the probe fails, the delay doubles, up to the maximum. A
/// `Retry-After` holds the whole host too. This type has no clock: callers pass monotonic times in milliseconds.
package struct HostCircuitBreakers: Sendable {
    /// The number of failures in a row that open a host's breaker.
    package static let failureLimit = 5
    /// The maximum number of hosts that are remembered. Beyond it, the host that would be free first is forgotten.
    package static let maximumHosts = 1024
    /// The time after which a probe that has not failed counts as successful, in milliseconds. Other requests may
    /// follow it.
    package static let probeTime: Int64 = 60_000

    /// The result of an attempt, as far as it concerns the host.
    package enum Outcome {
        /// The host responds.
        case alive
        /// A failed connection, or an error of the server itself.
        case failed
        /// An attempt that says nothing about the host, such as a cancelled one.
        case unknown
    }

    package enum Admission: Equatable {
        case go
        /// The request has to ask again after this many milliseconds, or when the host's state changes.
        case wait(milliseconds: Int64)
    }

    private struct Standing {
        var failures = 0
        /// The source of the last failure; `nil` if none was named.
        var lastSource: Int64?
        /// The present duration of the breaker's open state, in milliseconds; 0 if it was never open.
        var pause: Int64 = 0
        /// The end of the breaker's open state. From then on only a single probe is admitted; `nil` if the breaker is
        /// closed.
        var openUntil: Int64?
        /// The deadline of the probe under way; `nil` if there is none.
        var probedUntil: Int64?
        /// The end of the hold that the server requested with `Retry-After`.
        var heldUntil: Int64?

        /// Closes the breaker because the probe is under way well. One more failure opens it again.
        mutating func passProbe() {
            openUntil = nil
            probedUntil = nil
            failures = HostCircuitBreakers.failureLimit - 1
        }

        /// The time from which the host is free: with neither an open breaker, nor a probe, nor a hold.
        var freeAt: Int64 { max(openUntil ?? .min, max(probedUntil ?? .min, heldUntil ?? .min)) }
    }

    /// The policy, which applies to future failures.
    package var policy: RetryPolicy
    private var hosts: [String: Standing] = [:]

    package init(policy: RetryPolicy) {
        self.policy = policy
    }

    var count: Int { hosts.count }

    /// Asks whether a request to `host` may be sent now.
    package mutating func admit(to host: String, now: Int64) -> Admission {
        let milliseconds = wait(of: host, now: now)
        guard milliseconds == 0 else { return .wait(milliseconds: milliseconds) }
        guard var standing = hosts[host] else { return .go }
        defer { hosts[host] = standing }
        standing.heldUntil = nil
        guard standing.openUntil != nil else { return .go }
        if standing.probedUntil != nil {
            standing.passProbe()
            return .go
        }
        standing.probedUntil = Self.after(Self.probeTime, now)
        return .go
    }

    /// Returns the time until `host` may be contacted again, in milliseconds; 0 if it may be now.
    package func hold(of host: String, now: Int64) -> Int64 {
        guard let standing = hosts[host] else { return 0 }
        let until = max(standing.openUntil ?? .min, standing.heldUntil ?? .min)
        return until > now ? until - now : 0
    }

    /// Returns whether the host has an entry.
    package func knows(_ host: String) -> Bool { hosts[host] != nil }

    /// Returns the time until ``admit(to:now:)`` would admit a request, in milliseconds; 0 if it would now.
    package func wait(of host: String, now: Int64) -> Int64 {
        guard let standing = hosts[host] else { return 0 }
        if let held = standing.heldUntil, held > now { return held - now }
        guard let openUntil = standing.openUntil else { return 0 }
        if openUntil > now { return openUntil - now }
        if let probed = standing.probedUntil, probed > now { return probed - now }
        return 0
    }

    /// Records the end of an attempt at `host`.
    ///
    /// - Parameters:
    ///   - source: the number of what was requested. Several failures of one source in a row count as one, since the
    ///     host may respond well to others.
    ///   - retryAfter: the hold that the server requested, in seconds.
    /// - Returns: whether requests waiting for the host should ask again.
    package mutating func record(
        _ outcome: Outcome, of host: String, bySource source: Int64? = nil, retryAfter: Int64? = nil, now: Int64
    ) -> Bool {
        if let retryAfter { hold(host, milliseconds: RetryPolicy.hold(retryAfter: retryAfter), now: now) }
        switch outcome {
        case .alive:
            guard let standing = hosts[host] else { return false }
            let isHeld = standing.heldUntil.map { $0 > now } ?? false
            hosts[host] = isHeld ? Standing(heldUntil: standing.heldUntil) : nil
            return standing.openUntil != nil
        case .unknown:
            // Another request may probe the host now.
            guard hosts[host]?.probedUntil != nil else { return false }
            hosts[host]?.probedUntil = nil
            return true
        case .failed: return fail(host, source, now: now)
        }
    }

    /// Records that bytes came from `host`: a probe under way counts as successful before it ends.
    package mutating func recordBytes(of host: String) {
        guard hosts[host]?.probedUntil != nil else { return }
        hosts[host]?.passProbe()
    }

    private mutating func fail(_ host: String, _ source: Int64?, now: Int64) -> Bool {
        if hosts[host] == nil { makeRoom(now: now) }
        var standing = hosts[host] ?? Standing()
        defer { hosts[host] = standing }
        let isRepeated = source != nil && source == standing.lastSource
        standing.lastSource = source
        if isRepeated, standing.openUntil == nil { return false }
        standing.failures = min(standing.failures + 1, Self.failureLimit)
        guard standing.failures >= Self.failureLimit else { return false }
        // A failure of a request that was sent before the breaker opened is no news.
        if let openUntil = standing.openUntil, openUntil > now || standing.probedUntil == nil { return false }
        let longest = max(0, policy.maximumDelay)
        let (doubled, isTooLong) = standing.pause.multipliedReportingOverflow(by: 2)
        standing.pause =
            standing.pause == 0
            ? min(longest, max(1, policy.baseDelay)) : isTooLong ? longest : min(longest, doubled)
        standing.openUntil = Self.after(standing.pause, now)
        standing.probedUntil = nil
        return true
    }

    /// Returns the rest of the hold that a server requested for `host`, in milliseconds; 0 if there is none.
    package func requestedHold(of host: String, now: Int64) -> Int64 {
        guard let until = hosts[host]?.heldUntil, until > now else { return 0 }
        return until - now
    }

    /// Ends the hold that a server requested for `host`.
    package mutating func endRequestedHold(of host: String) {
        guard var standing = hosts[host] else { return }
        standing.heldUntil = nil
        hosts[host] = standing.failures > 0 || standing.openUntil != nil ? standing : nil
    }

    /// Forgets the state of `host`.
    package mutating func forget(_ host: String) { hosts[host] = nil }

    /// Applies a hold that a server requested for `host`.
    ///
    /// - Parameter milliseconds: capped at ``RetryPolicy/longestHold``.
    package mutating func hold(_ host: String, milliseconds: Int64, now: Int64) {
        let milliseconds = min(milliseconds, RetryPolicy.longestHold)
        guard milliseconds > 0 else { return }
        if hosts[host] == nil { makeRoom(now: now) }
        var standing = hosts[host] ?? Standing()
        let until = Self.after(milliseconds, now)
        standing.heldUntil = max(standing.heldUntil ?? .min, until)
        hosts[host] = standing
    }

    private mutating func makeRoom(now: Int64) {
        guard hosts.count >= Self.maximumHosts else { return }
        // Entries that hold no request, such as counts of a few failures, are removed first.
        hosts = hosts.filter { $0.value.freeAt > now }
        while hosts.count >= Self.maximumHosts, let first = hosts.min(by: { $0.value.freeAt < $1.value.freeAt })?.key {
            hosts[first] = nil
        }
    }

    /// Adds saturating at `Int64.max`.
    private static func after(_ milliseconds: Int64, _ now: Int64) -> Int64 {
        let (sum, isBeyond) = now.addingReportingOverflow(milliseconds)
        return isBeyond ? .max : sum
    }
}
