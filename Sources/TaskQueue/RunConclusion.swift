import Glibc
import TaskModel
import TaskStore
import Transfer

/// What a run of a task comes to: a pure function of the record, what the engine reports and why it was asked to
/// end, if it was.
struct RunConclusion {
    /// Why a run was ended from outside.
    enum Order: Sendable, Equatable {
        case pause, cancel, remove
        /// The daemon ends, or the task's specification changed: back to the queue, and no attempt is burned.
        case release
    }

    /// What the engine reports.
    struct Report: Sendable {
        var error: TransferError?
        /// Attempts within the run.
        var attempts: Int
        /// Bytes of body that came or went in this run.
        var transferred: Int64
        /// Bytes of the file that are there after it.
        var bytesDone: Int64 = 0
        /// What was there before the run was given up for them.
        var beganAnew = false
        var isVerified = false
    }

    let record: TaskRecord
    let policy: RetryPolicy
    let now: Milliseconds
    /// Milliseconds for which the host is left alone.
    var hold: Milliseconds = 0
    /// Another task receives from the host or sends to it.
    var isHostAtWork = false

    /// A task that waits for a place at a host waits as long as one that failed so often in a row.
    private static let shortWait = 3
    /// The number of failures in a row that ends a task whose host's name does not exist. With the default delays the
    /// attempts take 31 seconds at most: a misspelt name is told soon, and one that was registered a moment ago is found.
    private static let unknownNameLimit = 6
    /// How often a task that waits for room looks for it, in milliseconds.
    static let diskProbe: Milliseconds = 5_000
    /// How often a task whose part another process has looks whether it is free, in milliseconds.
    static let partProbe: Milliseconds = 10_000
    /// The longest that a task waits for a sign of the network, in milliseconds.
    static let networkProbe: Milliseconds = 30_000

    /// - Returns: `nil` where the task just goes back to where it was in the queue.
    func conclude(
        _ report: Report, order: Order?, using generator: inout some RandomNumberGenerator
    ) -> TaskConclusion? {
        guard let error = report.error else {
            return conclusion(.succeed, report, isVerified: report.isVerified)
        }
        if error.code == .cancelled {
            switch order {
            case .pause: return conclusion(.pause, report, burns: false)
            case .cancel, .remove: return conclusion(.cancel, report, burns: false)
            case .release, nil: return nil
            }
        }
        // It failed before it could be stopped: the order stands all the same.
        switch order {
        case .pause: return conclusion(.pause, report, error: error)
        case .cancel, .remove: return conclusion(.cancel, report, error: error)
        case .release: return nil
        case nil: break
        }
        if error.code == .partInUse {
            let until = now + min(Self.partProbe, policy.maximumDelay)
            return conclusion(.park(.retry, until: until), report, error: error, burns: false)
        }
        // For as long as it takes: somebody makes room, which shows.
        if error.code == .allowanceUsedUp {
            return conclusion(.park(.quota, until: nil), report, error: error, burns: false)
        }
        if isOfDisk(error) { return waitingForDisk(report, error, using: &generator) }
        switch RetryClass(error) {
        case .soon where isHostAtWork && Self.maySayFull(error):
            // The host may allow only so many connections, which says nothing against the task. The host is spared by
            // its breaker, which some refusals open, and which closes when the other task ends.
            let delay = policy.delay(failures: Self.shortWait, retryAfter: error.retryAfter, using: &generator)
            return conclusion(
                .park(.retry, until: now + delay), report, error: error,
                failures: isFurther(report) ? 0 : record.failures)
        case .soon:
            let failures = failures(after: report)
            guard failures < attempts(after: error) else { return conclusion(.fail, report, error: error) }
            let own = policy.delay(failures: failures, retryAfter: error.retryAfter, using: &generator)
            // Another is to find out how the host is: one that did would otherwise use up its attempts for all.
            let delay =
                own > hold ? own : hold + policy.delay(failures: failures, using: &generator)
            return conclusion(.park(.retry, until: now + delay), report, error: error, failures: failures)
        case .whenNetworkChanges:
            let until = now + Self.networkDelay(policy)
            return conclusion(.park(.network, until: until), report, error: error, burns: false)
        case .whenDiskHasRoom:
            let delay = min(Self.diskProbe, policy.maximumDelay)
            return conclusion(.park(.diskFull, until: now + delay), report, error: error, burns: false)
        case .whenSystemRecovers:
            // For as long as it takes, at the pace that the failures before it have come to.
            let failures = min(failures(after: report), max(0, policy.attempts - 1))
            let delay = policy.delay(failures: failures, using: &generator)
            return conclusion(.park(.retry, until: now + delay), report, error: error, failures: failures)
        case .whenAuthorised:
            // What let us in before and does no longer has expired. What an upload sent says nothing of that.
            let worked = record.specification.kind == .download && record.bytesFetched + report.transferred > 0
            let reason: TaskReason = error.httpStatus == 403 && worked ? .urlExpired : .auth
            return conclusion(.block(reason), report, error: error)
        case .whenSourceIsRight: return conclusion(.block(.sourceChanged), report, error: error)
        case .never: return conclusion(.fail, report, error: error)
        }
    }

    /// Whether a disk of this machine is at fault: a place that is missing, forbidden, read-only or broken.
    private func isOfDisk(_ error: TransferError) -> Bool {
        guard let systemError = error.systemError else { return error.code == .volumeDetached }
        return switch error.code {
        // Memory and descriptors are missing everywhere and not in one place.
        case .io: ![ENOMEM, EMFILE, ENFILE, EAGAIN].contains(systemError)
        // The rights to the source of an upload are a person's decision.
        case .permissionDenied: record.specification.kind == .download
        // The directory lies beneath none of the roots now.
        case .pathNotAllowed: systemError == EPERM
        default: false
        }
    }

    /// Waits until the disk can be used again. No attempt is burned; a disk that fails while it takes bytes is tried
    /// again at the pace of other failures, since each attempt asks the server for them.
    private func waitingForDisk(
        _ report: Report, _ error: TransferError, using generator: inout some RandomNumberGenerator
    ) -> TaskConclusion? {
        guard report.transferred > 0 else {
            let until = now + min(Self.diskProbe, policy.maximumDelay)
            return conclusion(.park(.disk, until: until), report, error: error, burns: false)
        }
        let failures = min(failures(after: report), max(0, policy.attempts - 1))
        let delay = policy.delay(failures: failures, using: &generator)
        // What is forbidden, read-only or taken off its place shows before a server is asked again.
        let isRefusal = error.code != .io || error.systemError == EROFS
        return conclusion(
            .park(.disk, until: now + delay), report, error: error, failures: failures, burns: !isRefusal)
    }

    /// Whether a host that has no room for another connection may answer so.
    private static func maySayFull(_ error: TransferError) -> Bool {
        error.code == .cannotConnect || error.httpStatus == 429 || error.httpStatus == 503
    }

    /// Milliseconds after which what waits for the network looks for it by itself.
    static func networkDelay(_ policy: RetryPolicy) -> Milliseconds {
        min(networkProbe, policy.maximumDelay, max(policy.baseDelay, 1_000) * 4)
    }

    /// Whether the run brought the task nearer to its end. What was fetched or sent all over again did not: else a
    /// server that breaks off each time, and whose file cannot be gone on with, would be asked for ever.
    private func isFurther(_ report: Report) -> Bool {
        record.specification.kind == .download && !report.beganAnew && report.bytesDone > record.bytesDone
    }

    /// The number of failures in a row that ends the task.
    ///
    /// It is smaller where two attempts in a row found that the name does not exist. One such answer is not enough: a
    /// router without its line gives it for every name.
    private func attempts(after error: TransferError) -> Int {
        let isUnknown = error.code == .unknownHost && record.error?.code == .dns
        return isUnknown ? min(policy.attempts, Self.unknownNameLimit) : policy.attempts
    }

    /// Failures in a row. Where a run began anew, what it brought after that is not held against it.
    private func failures(after report: Report) -> Int {
        isFurther(report) ? 1 : record.failures + (report.beganAnew ? 1 : report.attempts)
    }

    private func conclusion(
        _ event: TaskStanding.Event, _ report: Report, error: TransferError? = nil, failures: Int? = nil,
        isVerified: Bool = false, burns: Bool = true
    ) -> TaskConclusion? {
        var standing = record.standing
        do throws(IllegalTransition) {
            if standing.state != .active { try standing.apply(.start) }
            try standing.apply(event)
        } catch {
            return nil
        }
        let before = isFurther(report) ? 0 : record.failures
        return TaskConclusion(
            standing: standing, attempts: record.attempts + (burns ? report.attempts : 0),
            failures: failures ?? (burns && error != nil ? before + 1 : before),
            error: error.map(Self.failure), verified: isVerified,
            finishedAt: standing.state.isEnded ? now : nil)
    }

    /// The engine's error in the words of the contract.
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
        // What the reader can do, in the words of the command line.
        let hint =
            switch error.code {
            case .addressNotAllowed: " (`network.deny` of the daemon's configuration)"
            case .allowanceUsedUp:
                " by your downloads: remove some with their files (dlctl remove --delete-file), or have "
                    + "limits.bytes-per-owner raised"
            default: error.httpStatus == 401 ? "; --user or a --header says who you are" : ""
            }
        return TaskFailure(code: code, message: error.message + hint, httpStatus: error.httpStatus)
    }
}
