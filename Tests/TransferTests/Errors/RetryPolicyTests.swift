import TestSupport
import Testing

@testable import Transfer

@Suite("When to try again")
struct RetryPolicyTests {
    @Test("full jitter: uniform from nothing to the doubled base delay", arguments: 1...6)
    func jitter(failures: Int) {
        let policy = RetryPolicy(baseDelay: 1000, maximumDelay: 600_000)
        var generator = SeededGenerator(seed: UInt64(failures))
        let ceiling = Int64(1000) << Int64(failures - 1)
        let delays = (0..<4000).map { _ in policy.delay(failures: failures, using: &generator) }
        #expect(delays.allSatisfy { (0...ceiling).contains($0) })
        // Each tenth of the span must receive a tenth of the delays, within five standard deviations (95).
        for tenth in 0..<10 {
            let low = ceiling * Int64(tenth) / 10
            let high = ceiling * Int64(tenth + 1) / 10
            let count = delays.count { $0 >= low && $0 < high }
            #expect((305...495).contains(count))
        }
    }

    @Test("no delay is longer than the maximum, however many failures there were")
    func cap() {
        let policy = RetryPolicy(baseDelay: 1000, maximumDelay: 5000)
        var generator = SeededGenerator(seed: 1)
        for failures in [4, 10, 63, 64, 1000, .max] {
            let delays = (0..<100).map { _ in policy.delay(failures: failures, using: &generator) }
            #expect(delays.allSatisfy { (0...5000).contains($0) })
            #expect(delays.contains { $0 > 2500 })
        }
    }

    @Test("Retry-After is kept to, with the jitter above it, and clamped to a day")
    func retryAfter() {
        let policy = RetryPolicy(baseDelay: 1000, maximumDelay: 5000)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<100 {
            #expect((7000...8000).contains(policy.delay(failures: 1, retryAfter: 7, using: &generator)))
            #expect((86_400_000...86_401_000).contains(policy.delay(failures: 1, retryAfter: .max, using: &generator)))
            #expect((0...1000).contains(policy.delay(failures: 1, retryAfter: .min, using: &generator)))
        }
    }

    @Test("numbers at their ends do not end the process")
    func overflow() {
        var generator = SeededGenerator(seed: 1)
        for base in [Int64.min, -1, 0, .max] {
            for maximum in [Int64.min, -1, 0, .max] {
                let policy = RetryPolicy(baseDelay: base, maximumDelay: maximum)
                for failures in [Int.min, 0, 1, .max] {
                    #expect(policy.delay(failures: failures, retryAfter: .max, using: &generator) >= 86_400_000)
                    #expect(policy.delay(failures: failures, using: &generator) >= 0)
                }
            }
        }
    }

    @Test(
        "the class of a failure",
        arguments: [
            (.cannotConnect, .soon), (.unknownHost, .soon), (.timedOut, .soon), (.stalled, .soon), (.truncated, .soon),
            (.resolverUnavailable, .whenNetworkChanges), (.unreachable, .whenNetworkChanges),
            (.diskFull, .whenDiskHasRoom), (.io, .whenSystemRecovers), (.sourceChanged, .whenSourceIsRight),
            (.tls, .never),
            (.protocolNotAllowed, .never), (.invalidRequest, .never), (.tooLarge, .never), (.checksumMismatch, .never),
            (.cancelled, .never), (.nameConflict, .never), (.pathNotAllowed, .never), (.permissionDenied, .never),
            (.tooManyRedirects, .never), (.internal, .never),
        ] as [(TransferError.Code, RetryClass)])
    func classes(code: TransferError.Code, expected: RetryClass) {
        #expect(RetryClass(TransferError(code, "")) == expected)
    }

    @Test("the class of every status from 300 on")
    func statuses() {
        for status in 300..<600 {
            let expected: RetryClass =
                switch status {
                case 408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524: .soon
                case 401, 403, 407: .whenAuthorised
                default: .never
                }
            #expect(RetryClass(TransferError(.httpStatus, "", httpStatus: status)) == expected, "\(status)")
        }
    }

    @Test("F81: 202 with Retry-After is worth a retry, and does not hold its host")
    func notReadyYet() {
        let waiting = TransferError(.httpStatus, "", httpStatus: 202, retryAfter: 30)
        #expect(RetryClass(waiting) == .soon && waiting.pauseOfHost == nil)
        #expect(RetryClass(TransferError(.httpStatus, "", httpStatus: 202)) == .never)
        #expect(TransferError(.httpStatus, "", httpStatus: 503, retryAfter: 30).pauseOfHost == 30)
        // A limit on the rate of requests.
        let limited = TransferError(.httpStatus, "", httpStatus: 403, retryAfter: 30)
        #expect(RetryClass(limited) == .soon && limited.pauseOfHost == 30)
        #expect(TransferError(.httpStatus, "", httpStatus: 404, retryAfter: 30).pauseOfHost == nil)
    }
}
