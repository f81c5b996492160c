import Glibc
import TaskFiles
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("What a run comes to")
struct RunOutcomePolicyTests {
    private static let now: Milliseconds = 1_000_000

    private static func record(kind: TaskKind = .download, attempts: Int = 4, failures: Int = 2) -> TaskRecord {
        var record = TaskRecord(
            id: TaskID(1), specification: TaskSpecification(kind: kind, url: "http://h/a"), owner: 1,
            lifecycle: TaskLifecycle(), createdAt: 0)
        record.attempts = attempts
        record.failures = failures
        record.bytesDone = 100
        return record
    }

    private static func conclude(
        _ error: TransferError?, order: RunOutcomePolicy.Order? = nil, record: TaskRecord = record(), attempts: Int = 1,
        transferred: Int64 = 0, bytesDone: Int64 = 100, beganAnew: Bool = false, isVerified: Bool = false
    ) -> TaskConclusion? {
        var generator = SeededGenerator(seed: 1)
        let policy = RetryPolicy(attempts: 10, baseDelay: 100, maximumDelay: 100_000)
        let report = RunOutcomePolicy.Report(
            error: error, attempts: attempts, transferred: transferred, bytesDone: bytesDone, beganAnew: beganAnew,
            isVerified: isVerified)
        return RunOutcomePolicy(record: record, policy: policy, now: now)
            .conclude(report, order: order, using: &generator)
    }

    @Test("a part that another process has is waited for, and countsAttempt nothing")
    func partInUse() throws {
        let outcome = try #require(Self.conclude(TransferError(.partInUse, "process 7 is at work on it")))
        #expect(outcome.lifecycle.reason == .retry && outcome.lifecycle.notBefore == Self.now + 10_000)
        #expect(outcome.attempts == 4 && outcome.failures == 2)
        #expect(outcome.error?.code == .partInUse && outcome.error?.message == "process 7 is at work on it")
    }

    @Test(
        "F71: another version that nothing confirms is asked for again no earlier than the base delay, and counts from the second on"
    )
    func unconfirmed() throws {
        let policy = RetryPolicy(attempts: 10, baseDelay: 5_000, maximumDelay: 100_000)
        var record = Self.record()
        record.failures = 0
        record.error = nil
        var generator = SeededGenerator(seed: 1)
        for failures in 0...1 {
            let outcome = try #require(
                RunOutcomePolicy(record: record, policy: policy, now: Self.now).conclude(
                    .init(error: TransferError(.remoteChanged, "m"), attempts: 1, transferred: 0), order: nil,
                    using: &generator))
            #expect(outcome.lifecycle.reason == .retry && outcome.failures == failures)
            #expect(try #require(outcome.lifecycle.notBefore) >= Self.now + 5_000)
            record.error = outcome.error
        }
    }

    @Test("what a server asks for is waited for once, also where it has been asked for by another task's answer")
    func held() throws {
        var error = TransferError(.httpStatus, "m")
        error.httpStatus = 503
        error.retryAfter = 100
        var generator = SeededGenerator(seed: 1)
        let policy = RetryPolicy(attempts: 10, baseDelay: 100, maximumDelay: 1_000)
        for hold in [0, 99_000, 100_500, 103_000] as [Milliseconds] {
            let outcome = RunOutcomePolicy(record: Self.record(), policy: policy, now: Self.now, hold: hold)
                .conclude(.init(error: error, attempts: 1, transferred: 0), order: nil, using: &generator)
            let wait = try #require(outcome?.lifecycle.notBefore) - Self.now
            #expect((max(100_000, hold)...max(100_000, hold) + 1_000).contains(wait), "\(hold): \(wait)")
        }
    }

    @Test("F82: a task's delay grows to the longest with each failure of its own, whatever else runs on its host")
    func growing() throws {
        let policy = RetryPolicy(attempts: 10, baseDelay: 100, maximumDelay: 3_000)
        for status in [429, 503, 500] {
            for isHostAtWork in [false, true] {
                var record = Self.record(failures: 0)
                var longest: Milliseconds = 0
                for failure in 1...9 {
                    var waits: [Milliseconds] = []
                    for seed in 0..<50 as Range<UInt64> {
                        var generator = SeededGenerator(seed: seed)
                        let outcome = RunOutcomePolicy(
                            record: record, policy: policy, now: Self.now, isHostAtWork: isHostAtWork
                        ).conclude(
                            .init(
                                error: TransferError(.httpStatus, "m", httpStatus: status), attempts: 1, transferred: 0),
                            order: nil, using: &generator)
                        let conclusion = try #require(outcome)
                        #expect(conclusion.failures == failure && conclusion.attempts == record.attempts + 1)
                        waits.append(try #require(conclusion.lifecycle.notBefore) - Self.now)
                    }
                    let ceiling = min(3_000, 100 << Milliseconds(failure - 1))
                    longest = waits.max() ?? 0
                    #expect(longest <= ceiling && longest > ceiling / 2, "\(status) \(failure): \(longest)")
                    record.failures = failure
                    record.attempts += 1
                }
            }
        }
    }

    @Test("a host that refuses another connection ends no task while one is at work; a limit of requests does")
    func full() throws {
        let policy = RetryPolicy(attempts: 3, baseDelay: 100, maximumDelay: 1_000)
        func state(_ error: TransferError, isHostAtWork: Bool) -> TaskState? {
            var generator = SeededGenerator(seed: 1)
            return RunOutcomePolicy(
                record: Self.record(failures: 20), policy: policy, now: Self.now, isHostAtWork: isHostAtWork
            ).conclude(.init(error: error, attempts: 1, transferred: 0), order: nil, using: &generator)?.lifecycle.state
        }
        for error in [TransferError(.httpStatus, "m", httpStatus: 503), TransferError(.cannotConnect, "m")] {
            #expect(state(error, isHostAtWork: true) == .waiting)
            #expect(state(error, isHostAtWork: false) == .failed)
        }
        for status in [429, 500] {
            #expect(state(TransferError(.httpStatus, "m", httpStatus: status), isHostAtWork: true) == .failed)
        }
    }

    /// The error, the state, the reason, the code, and whether the attempt counts.
    private static let table: [(TransferError, TaskState, TaskReason?, String, countsAttempt: Bool)] = [
        (TransferError(.invalidRequest, "m"), .failed, nil, "invalid", true),
        (TransferError(.unknownHost, "m"), .waiting, .retry, "dns", true),
        (TransferError(.resolverUnavailable, "m"), .waiting, .network, "dns", false),
        (TransferError(.unreachable, "m"), .waiting, .network, "connect", false),
        (TransferError(.cannotConnect, "m"), .waiting, .retry, "connect", true),
        (TransferError(.tls, "m"), .failed, nil, "tls", true),
        (TransferError(.timedOut, "m"), .waiting, .retry, "timeout", true),
        (TransferError(.stalled, "m"), .waiting, .retry, "stalled", true),
        (TransferError(.truncated, "m"), .waiting, .retry, "truncated", true),
        (TransferError(.tooManyRedirects, "m"), .failed, nil, "too-many-redirects", true),
        (TransferError(.protocolNotAllowed, "m"), .failed, nil, "protocol-not-allowed", true),
        (TransferError(.checksumMismatch, "m"), .failed, nil, "checksum-mismatch", true),
        (TransferError(.remoteChanged, "m"), .waiting, .retry, "remote-changed", true),
        (TransferError(.nameConflict, "m"), .failed, nil, "name-conflict", true),
        (TransferError(.pathNotAllowed, "m"), .failed, nil, "path-not-allowed", true),
        (TransferError(.diskFull, "m"), .waiting, .diskFull, "disk-full", false),
        (TransferError(.permissionDenied, "m"), .failed, nil, "permission-denied", true),
        (TransferError(.permissionDenied, "m", systemError: EACCES), .waiting, .disk, "permission-denied", false),
        (TransferError(.io, "m"), .waiting, .retry, "io", true),
        (TransferError(.io, "m", systemError: ENOMEM), .waiting, .retry, "io", true),
        (TransferError(.io, "m", systemError: EMFILE), .waiting, .retry, "io", true),
        (TransferError(.io, "m", systemError: ENOENT), .waiting, .disk, "io", false),
        (TransferError(.io, "m", systemError: EROFS), .waiting, .disk, "io", false),
        (TransferError(.io, "m", systemError: EIO), .waiting, .disk, "io", false),
        (TransferError(.permissionDenied, "m", systemError: EPERM), .waiting, .disk, "permission-denied", false),
        (TransferError(.pathNotAllowed, "m", systemError: ENAMETOOLONG), .failed, nil, "path-not-allowed", true),
        (TransferError(.tooLarge, "m", systemError: EFBIG), .failed, nil, "too-large", true),
        (TransferError(.pathNotAllowed, "m", systemError: EPERM), .waiting, .disk, "path-not-allowed", false),
        (TransferError(.pathNotAllowed, "m", systemError: ELOOP), .failed, nil, "path-not-allowed", true),
        (TransferError(.volumeDetached, "m"), .waiting, .disk, "io", false),
        (TransferError(.loginRefused, "m"), .paused, .auth, "permission-denied", true),
        (TransferError(.notFound, "m"), .failed, nil, "http-404", true),
        (TransferError(.sourceChanged, "m"), .paused, .sourceChanged, "source-changed", true),
        (TransferError(.tooLarge, "m"), .failed, nil, "too-large", true),
        (TransferError(.invalidated, "m"), .failed, nil, "internal", true),
        (TransferError(.internal, "m"), .failed, nil, "internal", true),
        (TransferError(.httpStatus, "m", httpStatus: 401), .paused, .auth, "http-401", true),
        (TransferError(.httpStatus, "m", httpStatus: 403), .paused, .auth, "http-403", true),
        (TransferError(.httpStatus, "m", httpStatus: 407), .paused, .auth, "http-407", true),
        (TransferError(.httpStatus, "m", httpStatus: 404), .failed, nil, "http-404", true),
        (TransferError(.httpStatus, "m", httpStatus: 410), .failed, nil, "http-410", true),
        (TransferError(.httpStatus, "m", httpStatus: 408), .waiting, .retry, "http-408", true),
        (TransferError(.httpStatus, "m", httpStatus: 429), .waiting, .retry, "http-429", true),
        (TransferError(.httpStatus, "m", httpStatus: 500), .waiting, .retry, "http-500", true),
        (TransferError(.httpStatus, "m", httpStatus: 501), .failed, nil, "http-501", true),
        (TransferError(.httpStatus, "m", httpStatus: 503), .waiting, .retry, "http-503", true),
    ]

    @Test("every error leads to one lifecycle, one word and one count")
    func errors() throws {
        for (error, state, reason, code, countsAttempt) in Self.table {
            let conclusion = try #require(Self.conclude(error), "\(code)")
            #expect(conclusion.lifecycle.state == state, "\(code)")
            #expect(conclusion.lifecycle.reason == reason, "\(code)")
            #expect(
                conclusion.error
                    == TaskFailure(code: ErrorCode(rawValue: code), message: "m", httpStatus: error.httpStatus))
            #expect(conclusion.attempts == (countsAttempt ? 5 : 4), "\(code)")
            // The first response with another version is no failure of its own.
            #expect(conclusion.failures == (countsAttempt && error.code != .remoteChanged ? 3 : 2), "\(code)")
            #expect(conclusion.finishedAt == (state == .failed ? Self.now : nil), "\(code)")
            #expect((conclusion.lifecycle.notBefore != nil) == (state == .waiting), "\(code)")
            if let until = conclusion.lifecycle.notBefore { #expect(until >= Self.now && until <= Self.now + 30_000) }
        }
    }

    @Test("the message of a certificate that nobody vouches for says how to trust it")
    func untrusted() {
        func message(_ words: String) -> String { RunOutcomePolicy.failure(TransferError(.tls, words)).message }
        let hint = "; to trust it: --cacert FILE, or hosts.NAME.trust of the configuration"
        for words in [
            "TLS with h failed: SSL certificate problem: self-signed certificate",
            "TLS with h failed: SSL certificate problem: self signed certificate in certificate chain",
            "TLS with h failed: SSL certificate problem: unable to get local issuer certificate",
        ] { #expect(message(words) == words + hint) }
        let expired = "TLS with h failed: SSL certificate problem: certificate has expired"
        #expect(message(expired) == expired)
    }

    @Test("an order stands, whatever error came before it")
    func orders() throws {
        for (error, _, _, code, _) in Self.table {
            let paused = try #require(Self.conclude(error, order: .pause))
            #expect((paused.lifecycle.state, paused.lifecycle.reason) == (.paused, .user), "\(code)")
            #expect(paused.error?.code.rawValue == code && paused.attempts == 5)
            for order in [RunOutcomePolicy.Order.cancel, .remove] {
                let cancelled = try #require(Self.conclude(error, order: order))
                #expect(cancelled.lifecycle.state == .cancelled && cancelled.finishedAt == Self.now, "\(code)")
            }
            #expect(Self.conclude(error, order: .release) == nil, "the daemon's end countsAttempt nothing")
        }
    }

    @Test("a run that was stopped countsAttempt no attempt and has no error")
    func stopped() throws {
        let stop = TransferError(.cancelled, "cancelled")
        for (order, state) in [
            (RunOutcomePolicy.Order.pause, TaskState.paused), (.cancel, .cancelled), (.remove, .cancelled),
        ] {
            let conclusion = try #require(Self.conclude(stop, order: order, attempts: 3))
            #expect(conclusion.lifecycle.state == state && conclusion.error == nil)
            #expect((conclusion.attempts, conclusion.failures) == (4, 2))
        }
        #expect(Self.conclude(stop, order: .release, attempts: 3) == nil)
        #expect(Self.conclude(stop) == nil)
    }

    @Test("success is success, whatever was ordered too late")
    func success() throws {
        for order in [nil, RunOutcomePolicy.Order.pause, .cancel, .remove, .release] {
            let conclusion = try #require(Self.conclude(nil, order: order, attempts: 2, isVerified: true))
            #expect(conclusion.lifecycle.state == .completed && conclusion.verified && conclusion.error == nil)
            #expect((conclusion.attempts, conclusion.finishedAt) == (6, Self.now))
        }
        #expect(Self.conclude(nil)?.verified == false)
    }

    @Test("attempts in a row without progress are counted to the limit")
    func limit() {
        let error = TransferError(.timedOut, "m")
        #expect(Self.conclude(error, record: Self.record(failures: 8))?.lifecycle.state == .waiting)
        #expect(Self.conclude(error, record: Self.record(failures: 9))?.lifecycle.state == .failed)
        #expect(Self.conclude(error, record: Self.record(failures: 7), attempts: 3)?.lifecycle.state == .failed)
        #expect(Self.conclude(error, record: Self.record(failures: 0), attempts: 3)?.failures == 3)
    }

    @Test("a task's own number of attempts takes the place of the configured one")
    func ownLimit() throws {
        let settings = QueueSettings(Configuration(), downloadDirectory: "/d", daemonUser: 1)
        var specification = TaskSpecification(url: "http://h/a")
        #expect(settings.retry(of: specification).attempts == settings.retry.attempts)
        specification.maxAttempts = 1_000
        #expect(settings.retry(of: specification).attempts == 1_000)
        #expect(settings.retry(of: specification).maximumDelay == settings.retry.maximumDelay)
    }

    /// - Returns: the number of attempts, and the milliseconds from the first attempt to the last.
    private func attempts(of error: TransferError, seed: UInt64) throws -> (count: Int, time: Milliseconds) {
        let manual = ManualClock()
        let begin = manual.now
        var generator = SeededGenerator(seed: seed)
        var hosts = HostCircuitBreakers(policy: RetryPolicy())
        var record = Self.record(attempts: 0, failures: 0)
        while record.attempts < 100 {
            _ = hosts.record(HostCircuitBreakers.Outcome(error), of: "h", retryAfter: nil, now: manual.now)
            let hold = hosts.hold(of: "h", now: manual.now)
            let conclusion = try #require(
                RunOutcomePolicy(record: record, policy: RetryPolicy(), now: manual.now, hold: hold).conclude(
                    .init(error: error, attempts: 1, transferred: 0), order: nil, using: &generator))
            record.attempts = conclusion.attempts
            record.failures = conclusion.failures
            record.error = conclusion.error
            guard let until = conclusion.lifecycle.notBefore else { break }
            manual.advance(by: until - manual.now)
        }
        return (record.attempts, manual.now - begin)
    }

    @Test("a name that does not exist fails within a minute, in six attempts; other failures have all ten")
    func unknownName() throws {
        for seed in 0..<200 as Range<UInt64> {
            let unknown = try attempts(of: TransferError(.unknownHost, "m"), seed: seed)
            #expect(unknown.count == 6 && unknown.time <= 60_000, "seed \(seed): \(unknown)")
        }
        #expect(try attempts(of: TransferError(.timedOut, "m"), seed: 1).count == 10)
    }

    @Test("one answer that a name does not exist ends no task that failed otherwise before; progress counts as ever")
    func unknownNameOnce() throws {
        let error = TransferError(.unknownHost, "m")
        var record = Self.record(failures: 8)
        record.error = TaskFailure(code: .connect, message: "m")
        #expect(Self.conclude(error, record: record)?.lifecycle.state == .waiting)
        record.error = TaskFailure(code: .dns, message: "m")
        #expect(Self.conclude(error, record: record)?.lifecycle.state == .failed)
        let further = Self.conclude(error, record: record, transferred: 50, bytesDone: 150)
        #expect(further?.lifecycle.state == .waiting && further?.failures == 1)
    }

    @Test("with progress the count starts again")
    func progress() {
        let record = Self.record(failures: 9)
        let truncated = Self.conclude(
            TransferError(.truncated, "m"), record: record, attempts: 3, transferred: 50, bytesDone: 150)
        #expect(truncated?.lifecycle.state == .waiting && truncated?.failures == 1 && truncated?.attempts == 7)
        let full = Self.conclude(TransferError(.diskFull, "m"), record: record, transferred: 50, bytesDone: 150)
        #expect(full?.failures == 0)
        let paused = Self.conclude(
            TransferError(.cancelled, "m"), order: .pause, record: record, transferred: 50, bytesDone: 150)
        #expect(paused?.failures == 0)
    }

    @Test("A31: bytes that are used up are waited for without a time, and burn nothing")
    func quota() throws {
        let error = TransferError(.allowanceUsedUp, "7 of the 7 bytes allowed are used")
        let record = Self.record(failures: 9)
        let parked = try #require(Self.conclude(error, record: record, transferred: 50, bytesDone: 50))
        #expect(parked.lifecycle.reason == .quota && parked.lifecycle.notBefore == nil)
        #expect(parked.failures == 9 && parked.attempts == record.attempts)
        #expect(parked.error?.code == .quota)
        #expect(parked.error?.message.hasPrefix("7 of the 7 bytes allowed are used by your downloads: remove") == true)
    }

    @Test("a place that cannot be used is looked at again in seconds; a disk that fails under bytes spares the server")
    func place() throws {
        let error = TransferError(.io, "m", systemError: EIO)
        let place = try #require(Self.conclude(error, record: Self.record(failures: 9)))
        #expect(place.lifecycle.notBefore == Self.now + RunOutcomePolicy.diskProbe && place.failures == 9)
        let worn = try #require(Self.conclude(error, record: Self.record(failures: 9), transferred: 50, bytesDone: 0))
        #expect(worn.lifecycle.reason == .disk && worn.failures == 9)
        let once = try #require(Self.conclude(error, record: Self.record(failures: 0), transferred: 50, bytesDone: 150))
        #expect(once.lifecycle.notBefore.map { $0 <= Self.now + 1_000 } == true && once.failures == 1)
    }

    @Test(
        "a place that became forbidden or read-only while bytes came countsAttempt no attempt",
        arguments: [
            TransferError(.permissionDenied, "m", systemError: EPERM), TransferError(.io, "m", systemError: EROFS),
        ])
    func forbidden(error: TransferError) throws {
        let record = Self.record(attempts: 4, failures: 0)
        let outcome = try #require(Self.conclude(error, record: record, transferred: 50, bytesDone: 150))
        #expect(outcome.lifecycle.reason == .disk && outcome.attempts == 4)
        #expect(outcome.lifecycle.notBefore.map { $0 <= Self.now + 1_000 } == true)
    }

    @Test("the rights to the source of an upload are not the disk's trouble")
    func uploadRights() {
        let error = TransferError(.permissionDenied, "m", systemError: EACCES)
        #expect(Self.conclude(error, record: Self.record(kind: .upload))?.lifecycle.state == .failed)
    }

    @Test("bytes fetched or sent all over again are no progress", arguments: [TaskKind.download, .upload])
    func noProgress(kind: TaskKind) {
        let record = Self.record(kind: kind, failures: 9)
        let error = TransferError(.httpStatus, "m", httpStatus: 500)
        let conclusion = Self.conclude(
            error, record: record, transferred: 100, bytesDone: kind == .upload ? 1_000 : 100)
        #expect(conclusion?.lifecycle.state == .failed)
    }

    @Test("more bytes than before are no progress where those before were given up for them")
    func beganAnew() {
        let error = TransferError(.truncated, "m")
        let conclusion = Self.conclude(
            error, record: Self.record(failures: 9), transferred: 500, bytesDone: 500, beganAnew: true)
        #expect(conclusion?.lifecycle.state == .failed)
        // Further interruptions after that are no evidence: each attempt may have got further.
        let first = Self.conclude(
            error, record: Self.record(failures: 0), attempts: 10, transferred: 500, bytesDone: 500, beganAnew: true)
        #expect(first?.lifecycle.state == .waiting && first?.failures == 1)
    }

    @Test("access that worked once has expired, access that never did is missing")
    func expired() {
        let error = TransferError(.httpStatus, "m", httpStatus: 403)
        var record = Self.record()
        #expect(Self.conclude(error, record: record)?.lifecycle.reason == .auth)
        #expect(Self.conclude(error, record: record, transferred: 1)?.lifecycle.reason == .urlExpired)
        record.bytesFetched = 1
        #expect(Self.conclude(error, record: record)?.lifecycle.reason == .urlExpired)
        let upload = Self.conclude(error, record: Self.record(kind: .upload), transferred: 1)
        #expect(upload?.lifecycle.reason == .auth, "what was sent says nothing of what was let in")
    }

    @Test("Retry-After is waited for, the jitter above it")
    func retryAfter() throws {
        let error = TransferError(.httpStatus, "m", httpStatus: 503, retryAfter: 7)
        let until = try #require(Self.conclude(error)?.lifecycle.notBefore)
        #expect((Self.now + 7_000...Self.now + 7_000 + 400).contains(until))
        let hostile = TransferError(.httpStatus, "m", httpStatus: 503, retryAfter: .max)
        let longest = try #require(Self.conclude(hostile)?.lifecycle.notBefore)
        #expect(longest <= Self.now + 86_400_000 + 400)
    }
}
