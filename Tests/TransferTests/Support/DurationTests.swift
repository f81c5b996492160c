import TestSupport
import Testing

@testable import Transfer

@Suite("Durations in place of milliseconds")
struct DurationTests {
    @Test(
        "a duration becomes whole milliseconds, rounded up, and never traps",
        arguments: [
            (.zero, 0), (.seconds(2), 2_000), (.milliseconds(1_500), 1_500), (.microseconds(1), 1),
            (.nanoseconds(1_000_001), 2), (.seconds(-1), 0), (.nanoseconds(-1), 0),
            (Duration(secondsComponent: .max, attosecondsComponent: 0), .max),
            (Duration(secondsComponent: .min, attosecondsComponent: 0), 0),
            (.milliseconds(Int64.max), .max), (.milliseconds(Int64.max) + .nanoseconds(1), .max),
        ] as [(Duration, Int64)])
    func milliseconds(duration: Duration, milliseconds: Int64) {
        #expect(duration.clampedMilliseconds == milliseconds)
    }

    @Test("the time-outs of requests and sessions can be set as durations")
    func timeouts() {
        var request = TransferRequest(url: "http://h/")
        #expect(request.timeoutDuration == nil && request.totalTimeoutDuration == nil)
        request.timeoutDuration = .seconds(10)
        request.totalTimeoutDuration = .milliseconds(Int64.max)
        #expect(request.timeout == 10_000 && request.totalTimeout == .max)
        #expect(request.timeoutDuration == .seconds(10) && request.totalTimeoutDuration == .milliseconds(Int64.max))
        request.timeoutDuration = nil
        #expect(request.timeout == nil)
        var configuration = SessionConfiguration()
        #expect(
            configuration.connectTimeoutDuration == .seconds(30) && configuration.stallTimeoutDuration == .seconds(60))
        configuration.connectTimeoutDuration = .seconds(5)
        configuration.stallTimeoutDuration = .seconds(-5)
        #expect(configuration.connectTimeout == 5_000 && configuration.stallTimeout == 0)
    }

    @Test("a request with the longest time-outs of all is sent as any other")
    func longest() async throws {
        let server = try ScriptedServer(["/a": [.status(200)]])
        let longest = Duration(secondsComponent: .max, attosecondsComponent: 0)
        let manager = try SessionManager(
            configuration: .test {
                $0.connectTimeoutDuration = longest
                $0.stallTimeoutDuration = longest
            })
        #expect(await manager.request(server.url("/a")).outcome.error == nil)
        var request = TransferRequest(url: server.url("/a"))
        request.timeoutDuration = longest
        request.totalTimeoutDuration = longest
        #expect(await manager.request(request).outcome.error == nil)
    }

    @Test("a retrier may wait for a duration")
    func retries() async throws {
        #expect(RetryDecision.retry(after: .seconds(2)) == .retry(after: 2_000))
        if case .retry(let milliseconds) = RetryDecision.retry(after: .microseconds(1)) { #expect(milliseconds == 1) }
        let server = try ScriptedServer(["/a": [.status(503), .status(200)]])
        let manager = try SessionManager(configuration: .test())
        manager.retrier = ClosureRetrier { request, _ in
            request.retryCount == 0 ? .retry(after: .seconds(-1)) : .doNotRetry
        }
        let request = manager.request(server.url("/a")).validate()
        #expect(await request.outcome.error == nil && request.retryCount == 1)
    }
}
