import Curl
import TaskModel
import Testing

@testable import TaskQueue
@testable import Transfer

@Suite("The attempts of a run")
struct AttemptReportTests {
    private func failed(_ bytes: Int64, at milliseconds: UInt64) -> FailedAttempt {
        FailedAttempt(
            error: TransferError(.truncated, "the connection was lost"), metrics: TransferMetrics(),
            transferredBytes: bytes, ended: milliseconds * 1_000_000)
    }

    @Test("a run without a request is one attempt from its start to its end")
    func plain() {
        let report = AttemptReport(startedAt: 1_000_000, began: 500)
        #expect(
            report.attempts(endedAt: 1_000_030, error: nil) == [TaskAttempt(startedAt: 1_000_000, endedAt: 1_000_030)])
        #expect(report.attempts(endedAt: nil, error: nil) == [TaskAttempt(startedAt: 1_000_000)])
    }

    @Test("each retry within a run is an attempt with its own bytes and its own error")
    func retries() {
        var report = AttemptReport(startedAt: 1_000_000, began: 500)
        report.failed = [failed(10, at: 600), failed(30, at: 900)]
        report.transferred = 100
        let error = TaskFailure(code: .http(404), message: "gone")
        let attempts = report.attempts(endedAt: 1_000_700, error: error)
        #expect(attempts.map(\.startedAt) == [1_000_000, 1_000_100, 1_000_400])
        #expect(attempts.map(\.endedAt) == [1_000_100, 1_000_400, 1_000_700])
        #expect(attempts.map(\.bytes) == [10, 20, 70])
        #expect(attempts.map { $0.error?.code } == [.truncated, .truncated, .http(404)])
    }

    @Test("an attempt notes why it went on over another connection")
    func note() {
        var exchange = ExchangeMetrics(stubbed: nil, to: TransferRequest(url: "http://h/"), begunAt: .now())
        exchange.departure = "a long pause"
        var report = AttemptReport(startedAt: 1_000, began: 0)
        report.exchanges = [
            exchange, ExchangeMetrics(stubbed: nil, to: TransferRequest(url: "http://h/"), begunAt: .now()),
        ]
        #expect(report.attempts(endedAt: nil, error: nil).map(\.note) == ["a long pause"])
    }

    @Test("no clock that was set makes an attempt end before its start")
    func clocks() {
        var report = AttemptReport(startedAt: 1_000_000, began: 500)
        report.failed = [failed(10, at: 100)]
        let attempts = report.attempts(endedAt: 0, error: nil)
        #expect(attempts.allSatisfy { $0.startedAt <= $0.endedAt ?? 0 }, "\(attempts)")
        report = AttemptReport(startedAt: .max, began: .min)
        report.failed = [failed(.max, at: 1 << 40)]
        report.transferred = .min
        #expect(report.attempts(endedAt: .min, error: nil).map(\.bytes) == [.max, 0])
    }
}
