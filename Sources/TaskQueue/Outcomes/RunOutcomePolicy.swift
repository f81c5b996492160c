import Glibc
import TaskModel
import TaskStore
import Transfer

/// The outcome of a task's run: a pure function of the record, the engine's report and the order that ended the run, if
/// any.
struct RunOutcomePolicy {
    /// The reason why a run was ended from outside.
    enum Order: Sendable, Equatable {
        case pause, cancel, remove
        /// The daemon stops, or the task's options changed. The task returns to the queue, and the run does not count
        /// as an attempt.
        case release
    }

    /// The engine's report of a run.
    struct Report: Sendable {
        var error: TransferError?
        /// The number of attempts within the run.
        var attempts: Int
        /// The body bytes received or sent in this run.
        var transferred: Int64
        /// The bytes of the file that are present after the run.
        var bytesDone: Int64 = 0
        /// Whether the run discarded the data of earlier runs.
        var beganAnew = false
        var isVerified = false
        /// Whether the server has no other version of the file that is there.
        var isUnchanged = false
    }

    let record: TaskRecord
    let policy: RetryPolicy
    let now: Milliseconds
    /// The time for which the host must not be contacted, in milliseconds.
    var hold: Milliseconds = 0
    /// Whether another task is transferring data with the host, and the run's error is the host's own.
    var isHostAtWork = false

    /// The number of consecutive failures that ends a task whose host name does not exist. With the default delays the
    /// attempts take at most 31 seconds. A misspelt name is reported soon, and a name registered a moment ago is still
    /// found.
    private static let unknownNameLimit = 6
    /// The interval, in milliseconds, at which a task that waits for disk space checks for it.
    static let diskProbe: Milliseconds = 5_000
    /// The interval, in milliseconds, at which a task checks whether another process has released its part file.
    static let partProbe: Milliseconds = 10_000
    /// The maximum time, in milliseconds, that a task waits for a notification about the network.
    static let networkProbe: Milliseconds = 30_000

    /// Returns the outcome of a run.
    ///
    /// - Returns: `nil` where the task simply returns to its place in the queue.
    func conclude(
        _ report: Report, order: Order?, using generator: inout some RandomNumberGenerator
    ) -> TaskConclusion? {
        guard let error = report.error else {
            return conclusion(report.isUnchanged ? .confirm : .succeed, report, isVerified: report.isVerified)
        }
        if error.code == .cancelled {
            switch order {
            case .pause: return conclusion(.pause, report, countsAttempt: false)
            case .cancel, .remove: return conclusion(.cancel, report, countsAttempt: false)
            case .release, nil: return nil
            }
        }
        // The run failed before it could be stopped. The order still applies.
        switch order {
        case .pause: return conclusion(.pause, report, error: error)
        case .cancel, .remove: return conclusion(.cancel, report, error: error)
        case .release: return nil
        case nil: break
        }
        if error.code == .partInUse {
            let until = now + min(Self.partProbe, policy.maximumDelay)
            return conclusion(.park(.retry, until: until), report, error: error, countsAttempt: false)
        }
        // The wait has no time limit. The task is released when its owner's quota has room.
        if error.code == .allowanceUsedUp {
            return conclusion(.park(.quota, until: nil), report, error: error, countsAttempt: false)
        }
        if isOfDisk(error) { return waitingForDisk(report, error, using: &generator) }
        switch RetryClass(error) {
        case .soon:
            // The first of two responses that have to agree is no failure of its own: the second one may confirm it.
            let isFirst = error.code == .remoteChanged && record.error?.code != .remoteChanged
            let failures = isFirst ? record.failures : failures(after: report)
            // A host that limits the number of connections has no room as long as the other task is at work. That does
            // not end a task, but its delay grows like any other.
            let isFull = isHostAtWork && Self.maySayFull(error)
            guard isFull || failures < attempts(after: error) else { return conclusion(.fail, report, error: error) }
            var own = policy.delay(failures: failures, retryAfter: error.retryAfter, using: &generator)
            // A response that follows earlier would not confirm another version.
            if error.code == .remoteChanged { own = max(own, policy.baseDelay) }
            // Another task probes the host first. The task that probes would otherwise use up its attempts on behalf of
            // all.
            let delay =
                own > hold ? own : hold + policy.delay(failures: failures, using: &generator)
            return conclusion(.park(.retry, until: now + delay), report, error: error, failures: failures)
        case .whenNetworkChanges:
            let until = now + Self.networkDelay(policy)
            return conclusion(.park(.network, until: until), report, error: error, countsAttempt: false)
        case .whenDiskHasRoom:
            let delay = min(Self.diskProbe, policy.maximumDelay)
            return conclusion(.park(.diskFull, until: now + delay), report, error: error, countsAttempt: false)
        case .whenSystemRecovers:
            // The wait has no time limit. Its back-off continues from the preceding failures.
            let failures = min(failures(after: report), max(0, policy.attempts - 1))
            let delay = policy.delay(failures: failures, using: &generator)
            return conclusion(.park(.retry, until: now + delay), report, error: error, failures: failures)
        case .whenAuthorised:
            // Access that was granted before and is now refused has expired. Bytes sent by an upload prove no earlier
            // access.
            let worked = record.specification.kind == .download && record.bytesFetched + report.transferred > 0
            let isOfProxy = (error.underlying as? ProxyRefusal)?.isCertain ?? false
            let reason: TaskReason = error.httpStatus == 403 && worked && !isOfProxy ? .urlExpired : .auth
            return conclusion(.block(reason), report, error: error)
        case .whenSourceIsRight: return conclusion(.block(.sourceChanged), report, error: error)
        case .never: return conclusion(.fail, report, error: error)
        }
    }

    /// Whether the error concerns a disk of this machine: a missing, inaccessible, read-only or faulty place.
    private func isOfDisk(_ error: TransferError) -> Bool {
        guard let systemError = error.systemError else { return error.code == .volumeDetached }
        return switch error.code {
        // A shortage of memory or file descriptors affects every place, not only this one.
        case .io: ![ENOMEM, EMFILE, ENFILE, EAGAIN].contains(systemError)
        // The permissions of an upload's source are a user's decision.
        case .permissionDenied: record.specification.kind == .download
        // The directory is no longer beneath any of the roots.
        case .pathNotAllowed: systemError == EPERM
        default: false
        }
    }

    /// Waits until the disk is usable again without counting an attempt. A disk that fails while bytes are written is
    /// retried with the normal back-off, since each attempt requests those bytes from the server again.
    private func waitingForDisk(
        _ report: Report, _ error: TransferError, using generator: inout some RandomNumberGenerator
    ) -> TaskConclusion? {
        guard report.transferred > 0 else {
            let until = now + min(Self.diskProbe, policy.maximumDelay)
            return conclusion(.park(.disk, until: until), report, error: error, countsAttempt: false)
        }
        let failures = min(failures(after: report), max(0, policy.attempts - 1))
        let delay = policy.delay(failures: failures, using: &generator)
        // A missing permission, a read-only file system and an unmounted volume are detected before the next request to
        // the server.
        let isRefusal = error.code != .io || error.systemError == EROFS
        return conclusion(
            .park(.disk, until: now + delay), report, error: error, failures: failures, countsAttempt: !isRefusal)
    }

    /// Whether the error is one with which a host may refuse an additional connection. 429 (RFC 6585, section 4) is
    /// about the number of requests.
    private static func maySayFull(_ error: TransferError) -> Bool {
        error.code == .cannotConnect || error.httpStatus == 503
    }

    /// Returns the time, in milliseconds, after which a task that waits for the network is retried without a
    /// notification.
    static func networkDelay(_ policy: RetryPolicy) -> Milliseconds {
        min(networkProbe, policy.maximumDelay, max(policy.baseDelay, 1_000) * 4)
    }

    /// Whether the run made progress. Data fetched or sent again from the beginning does not count. Otherwise a server
    /// that always breaks off and does not support resumption would be contacted for ever.
    private func isFurther(_ report: Report) -> Bool {
        record.specification.kind == .download && !report.beganAnew && report.bytesDone > record.bytesDone
    }

    /// Returns the number of consecutive failures that ends the task.
    ///
    /// The limit is lower where two consecutive attempts found that the host name does not exist. One such response is
    /// not enough: a router that has lost its uplink gives it for every name.
    private func attempts(after error: TransferError) -> Int {
        let isUnknown = error.code == .unknownHost && record.error?.code == .dns
        return isUnknown ? min(policy.attempts, Self.unknownNameLimit) : policy.attempts
    }

    /// Returns the number of consecutive failures. Where a run restarted from the beginning, its later attempts are not
    /// counted.
    private func failures(after report: Report) -> Int {
        isFurther(report) ? 1 : record.failures + (report.beganAnew ? 1 : report.attempts)
    }

    private func conclusion(
        _ event: TaskLifecycle.Event, _ report: Report, error: TransferError? = nil, failures: Int? = nil,
        isVerified: Bool = false, countsAttempt: Bool = true
    ) -> TaskConclusion? {
        var lifecycle = record.lifecycle
        do throws(IllegalTransition) {
            if lifecycle.state != .active { try lifecycle.apply(.start) }
            try lifecycle.apply(event)
        } catch {
            return nil
        }
        let before = isFurther(report) ? 0 : record.failures
        return TaskConclusion(
            lifecycle: lifecycle, attempts: record.attempts + (countsAttempt ? report.attempts : 0),
            failures: failures ?? (countsAttempt && error != nil ? before + 1 : before),
            error: error.map(Self.failure), verified: isVerified,
            finishedAt: lifecycle.state.isEnded ? now : nil)
    }

    /// Converts the engine's error into the error codes of the public interface.
    static func failure(_ error: TransferError) -> TaskFailure {
        let code: ErrorCode =
            switch error.code {
            case .httpStatus: .http(error.httpStatus ?? 0)
            case .resolverUnavailable: .dns
            case .notFound: .http(404)
            case .unreachable: .connect
            case .loginRefused: .permissionDenied
            case .volumeDetached: .io
            case .allowanceUsedUp: .quota
            case .cancelled, .invalidated: .internal
            default: ErrorCode(rawValue: error.code.rawValue)
            }
        // A hint for the user, in terms of the command line.
        let hint =
            switch error.code {
            case .addressNotAllowed: " (\"network.deny\" of the daemon's configuration)"
            case .allowanceUsedUp:
                " by your downloads: remove some with their files (dlctl remove --delete-file), or have "
                    + "limits.bytes-per-owner raised"
            case .tls where tellsOfUnknownAuthority(error.message):
                "; to trust it: --cacert FILE, or hosts.NAME.trust of the configuration"
            default: (error.underlying as? ProxyRefusal).map(hint) ?? ""
            }
        return TaskFailure(code: code, message: error.message + hint, httpStatus: error.httpStatus)
    }

    /// Whether OpenSSL refused a certificate that is self-signed or signed by an unknown authority. The words are those
    /// of X509_verify_cert_error_string(3), also in older versions.
    private static func tellsOfUnknownAuthority(_ message: String) -> Bool {
        ["self-signed", "self signed", "issuer certificate", "verify the first certificate"].contains {
            message.contains($0)
        }
    }

    private static func hint(_ refusal: ProxyRefusal) -> String {
        refusal.isOfRequest
            ? "; give another proxy, or its login in its URL, with dlctl set --proxy URL"
            : "; have network.proxy, network.no-proxy or hosts.PATTERN.proxy of the configuration changed, or give a proxy "
                + "with dlctl set --proxy URL"
    }
}
