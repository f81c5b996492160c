/// How the hosts stand that gave trouble: which are left alone, and until when.
///
/// A host is scheme, name and port. After ``failureLimit`` failures in a row its breaker opens: nobody asks it until the
/// base delay has passed, then one request probes it; where that fails, the time doubles, up to the longest. A
/// `Retry-After` holds the whole host too. A value without a clock: times are handed in, milliseconds of one that no one
/// sets.
package struct HostStandings: Sendable {
    /// Failures in a row that open a host's breaker.
    package static let failureLimit = 5
    /// Hosts that are remembered; past that the one that would be free first is forgotten.
    package static let maximumHosts = 1024
    /// Milliseconds after which a probe that has not failed counts as well under way: others may follow it.
    package static let probeTime: Int64 = 60_000

    /// What the end of an attempt says of the host.
    package enum Outcome {
        /// It answers.
        case alive
        /// No connection, or a failure of the server's own.
        case failed
        /// Nothing, as where the request was cancelled.
        case unknown
    }

    package enum Admission: Equatable {
        case go
        /// Ask again after so many milliseconds, or when something has become known of the host.
        case wait(milliseconds: Int64)
    }

    private struct Standing {
        var failures = 0
        /// Milliseconds that the breaker stays open this time; 0: it was not open.
        var pause: Int64 = 0
        /// The breaker is open until then, and from then on for all but one.
        var opensAt: Int64?
        /// A request is on its way to find out, and has until then.
        var probedUntil: Int64?
        /// Asked by the server not to come before.
        var heldUntil: Int64?

        /// The probe goes on, and so may others; one more failure and the breaker is open again.
        mutating func passProbe() {
            opensAt = nil
            probedUntil = nil
            failures = HostStandings.failureLimit - 1
        }

        /// Nothing is to be waited for from then on.
        var freeAt: Int64 { max(opensAt ?? .min, max(probedUntil ?? .min, heldUntil ?? .min)) }
    }

    /// Counts for what happens from now on.
    package var policy: RetryPolicy
    private var hosts: [String: Standing] = [:]

    package init(policy: RetryPolicy) {
        self.policy = policy
    }

    var count: Int { hosts.count }

    /// A request wants to ask `host`.
    package mutating func admit(to host: String, now: Int64) -> Admission {
        let milliseconds = wait(of: host, now: now)
        guard milliseconds == 0 else { return .wait(milliseconds: milliseconds) }
        guard var standing = hosts[host] else { return .go }
        defer { hosts[host] = standing }
        standing.heldUntil = nil
        guard standing.opensAt != nil else { return .go }
        if standing.probedUntil != nil {
            standing.passProbe()
            return .go
        }
        standing.probedUntil = Self.after(Self.probeTime, now)
        return .go
    }

    /// Milliseconds until `host` may be asked again, 0 where it may be now.
    package func hold(of host: String, now: Int64) -> Int64 {
        guard let standing = hosts[host] else { return 0 }
        let until = max(standing.opensAt ?? .min, standing.heldUntil ?? .min)
        return until > now ? until - now : 0
    }

    /// Something is remembered of `host`.
    package func knows(_ host: String) -> Bool { hosts[host] != nil }

    /// Milliseconds until ``admit(to:now:)`` would let a request go, 0 where it would now.
    package func wait(of host: String, now: Int64) -> Int64 {
        guard let standing = hosts[host] else { return 0 }
        if let held = standing.heldUntil, held > now { return held - now }
        guard let opensAt = standing.opensAt else { return 0 }
        if opensAt > now { return opensAt - now }
        if let probed = standing.probedUntil, probed > now { return probed - now }
        return 0
    }

    /// An attempt at `host` ended.
    ///
    /// - Parameter retryAfter: seconds that the server wants to be left alone.
    /// - Returns: whether those who wait for the host should ask again.
    package mutating func note(
        _ outcome: Outcome, of host: String, retryAfter: Int64? = nil, now: Int64
    ) -> Bool {
        if let retryAfter { hold(host, milliseconds: RetryPolicy.hold(retryAfter: retryAfter), now: now) }
        switch outcome {
        case .alive:
            guard let standing = hosts[host] else { return false }
            let isHeld = standing.heldUntil.map { $0 > now } ?? false
            hosts[host] = isHeld ? Standing(heldUntil: standing.heldUntil) : nil
            return standing.opensAt != nil
        case .unknown:
            // Somebody else may find out.
            guard hosts[host]?.probedUntil != nil else { return false }
            hosts[host]?.probedUntil = nil
            return true
        case .failed: return fail(host, now: now)
        }
    }

    /// Bytes come from `host`: a probe that is on its way has not to end before others follow it.
    package mutating func noteBytes(of host: String) {
        guard hosts[host]?.probedUntil != nil else { return }
        hosts[host]?.passProbe()
    }

    private mutating func fail(_ host: String, now: Int64) -> Bool {
        if hosts[host] == nil { makeRoom(now: now) }
        var standing = hosts[host] ?? Standing()
        defer { hosts[host] = standing }
        standing.failures = min(standing.failures + 1, Self.failureLimit)
        guard standing.failures >= Self.failureLimit else { return false }
        // One that was on its way when the breaker opened tells nothing new.
        if let opensAt = standing.opensAt, opensAt > now || standing.probedUntil == nil { return false }
        let longest = max(0, policy.maximumDelay)
        let (doubled, isTooLong) = standing.pause.multipliedReportingOverflow(by: 2)
        standing.pause =
            standing.pause == 0
            ? min(longest, max(1, policy.baseDelay)) : isTooLong ? longest : min(longest, doubled)
        standing.opensAt = Self.after(standing.pause, now)
        standing.probedUntil = nil
        return true
    }

    /// Milliseconds that a server wants `host` to be left alone for yet, 0 where it does not.
    package func requestedHold(of host: String, now: Int64) -> Int64 {
        guard let until = hosts[host]?.heldUntil, until > now else { return 0 }
        return until - now
    }

    /// What was known of `host` counts no longer.
    package mutating func forget(_ host: String) { hosts[host] = nil }

    /// A server wants `host` to be left alone.
    ///
    /// - Parameter milliseconds: at most ``RetryPolicy/longestHold`` of them count.
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
        // Counts of a few failures go first: they hold nobody.
        hosts = hosts.filter { $0.value.freeAt > now }
        while hosts.count >= Self.maximumHosts, let first = hosts.min(by: { $0.value.freeAt < $1.value.freeAt })?.key {
            hosts[first] = nil
        }
    }

    /// What lies beyond the end of the clock is its end.
    private static func after(_ milliseconds: Int64, _ now: Int64) -> Int64 {
        let (sum, isBeyond) = now.addingReportingOverflow(milliseconds)
        return isBeyond ? .max : sum
    }
}
