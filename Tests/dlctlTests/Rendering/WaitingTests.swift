import TaskModel
import Testing

@testable import dlctl

@Suite struct WaitingTests {
    private static func words(
        _ state: TaskState, _ reason: TaskReason?, until: Milliseconds? = 25_000, _ code: ErrorCode? = nil,
        _ message: String = "m", attempts: Int = 3, after: Int64? = nil
    ) -> String {
        var task = sampleTask(7, state, reason: reason)
        task.notBefore = until
        task.error = code.map { TaskFailure(code: $0, message: message) }
        task.attempts = attempts
        task.afterTask = after.map { TaskID($0) }
        return Describe.state(task, now: 10_000, clock: { "at \($0)" })
    }

    @Test("a task that is tried again says why, and when which attempt follows")
    func retry() {
        #expect(Self.words(.waiting, .retry, .dns) == "name does not resolve, 4th try in 15 s")
        #expect(Self.words(.waiting, .retry, .http(503), attempts: 1) == "server replied 503, 2nd try in 15 s")
        #expect(Self.words(.waiting, .retry, attempts: 1) == "failed, 2nd try in 15 s")
        #expect(Self.words(.waiting, .retry, until: 0, .tls) == "TLS error, 4th try in 1 s")
        #expect(Self.words(.waiting, .retry, until: nil, .tls) == "TLS error")
    }

    @Test("every other reason reads as plain words")
    func reasons() {
        #expect(Self.words(.waiting, .diskFull, until: 12_001, .diskFull) == "disk full, next check in 3 s")
        #expect(Self.words(.waiting, .network, .dns) == "waits for the network, next check in 15 s")
        #expect(Self.words(.waiting, .network, until: nil) == "waits for the network")
        #expect(Self.words(.waiting, .scheduled) == "starts at at 25000")
        #expect(Self.words(.waiting, .dependency, until: nil, after: 4) == "after task 4")
        #expect(Self.words(.waiting, .dependency, until: nil) == "after another task")
        #expect(Self.words(.queued, .hostLimit, until: nil) == "waits for a free connection to its host")
        #expect(Self.words(.queued, .hostLimit) == "host is on hold, next try in 15 s")
        #expect(Self.words(.queued, nil) == "queued")
    }

    @Test("a window of the schedule says until when it pauses")
    func schedule() {
        #expect(Self.words(.queued, .scheduled) == "paused by the schedule until at 25000")
        #expect(Self.words(.queued, .scheduled, until: nil) == "paused by the schedule")
    }

    @Test(
        "a reason without a phrase of its own is told by its error, else by its word",
        arguments: [
            (nil, "", "novel reason"), (ErrorCode.dns, "m", "name does not resolve"),
            (.io, "/mnt/disk is missing; mount it", "/mnt/disk is missing"),
            (.permissionDenied, "cannot write to /srv", "cannot write to /srv"), (.io, "", "input/output error"),
        ])
    func unknown(code: ErrorCode?, message: String, expected: String) {
        #expect(Cause.phrase("novel-reason", code.map { TaskFailure(code: $0, message: message) }) == expected)
    }

    @Test(
        "attempts are counted as people do",
        arguments: [
            (1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"), (21, "21st"),
            (101, "101st"), (111, "111th"),
        ])
    func ordinals(number: Int, text: String) { #expect(Waiting.ordinal(number) == text) }

    @Test("show names the state before the explanation")
    func show() {
        var task = sampleTask(7, .waiting, reason: .retry)
        task.error = TaskFailure(code: .dns, message: "m")
        #expect(Show.lines(task, now: 0).contains("  state     waiting: name does not resolve"))
        task.checksumURL = "https://example.org/SHA256SUMS"
        #expect(Show.lines(task, now: 0).contains("  checksum list  https://example.org/SHA256SUMS"))
    }
}
