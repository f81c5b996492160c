import TaskFiles
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("The rates in force", .timeLimit(.minutes(1)))
struct BandwidthControllerTests {
    /// Thursday, 2023-11-16, midnight UTC: the first midnight after the manual clock's start.
    private static let midnight: Milliseconds = 1_700_092_800_000
    private static let hour: Milliseconds = 3_600_000

    private static func clock(_ manual: ManualClock) -> QueueClock {
        var clock = manual.clock
        clock.utcOffset = { _ in 0 }
        return clock
    }

    private static func fixture(
        _ manual: ManualClock, _ change: (inout QueueSettings) -> Void = { _ in }
    ) async throws -> QueueFixture {
        try await QueueFixture(clock: clock(manual)) { settings in
            settings.rates = TransferRates(download: 1_000, upload: nil)
            change(&settings)
        }
    }

    @Test("what someone says goes before the configuration, and is taken back by them alone")
    func orders() async throws {
        let fixture = try await Self.fixture(ManualClock())
        var rates = await fixture.queue.ratesInForce()
        #expect((rates.download, rates.downloadSource, rates.upload) == (1_000, .configuration, nil))
        rates = try await fixture.queue.orderRates { $0 = RateOrders(download: .limit(7), upload: .limit(8)) }
        #expect((rates.download, rates.upload, rates.uploadSource) == (7, 8, .command))
        rates = try await fixture.queue.orderRates { $0.download = .unlimited }
        #expect((rates.download, rates.downloadSource, rates.upload) == (nil, .command, 8))
        // The rates are restored after a restart.
        await fixture.queue.stop()
        let next = try QueueFixture.queue(fixture.store, fixture.settings)
        await next.start()
        rates = await next.ratesInForce()
        #expect((rates.download, rates.downloadSource, rates.upload) == (nil, .command, 8))
        rates = try await next.orderRates { $0 = RateOrders() }
        #expect((rates.download, rates.downloadSource, rates.upload) == (1_000, .configuration, nil))
        await next.stop()
    }

    @Test("a window's rates count from its beginning to its end, where nobody said otherwise")
    func window() async throws {
        let manual = ManualClock()
        let fixture = try await Self.fixture(manual) {
            $0.schedule = Schedule([ScheduleWindow(from: 60, to: 120, downloadRate: 50)])
        }
        manual.advance(by: Self.midnight + Self.hour - 1 - manual.now)
        #expect(await fixture.queue.ratesInForce().download == 1_000)
        manual.advance(by: 1)
        let rates = await fixture.queue.ratesInForce()
        #expect((rates.download, rates.downloadSource, rates.upload) == (50, .schedule, nil))
        _ = try await fixture.queue.orderRates { $0.download = .limit(9) }
        #expect(await fixture.queue.ratesInForce().download == 9)
        _ = try await fixture.queue.orderRates { $0.download = nil }
        manual.advance(by: Self.hour)
        #expect(await fixture.queue.ratesInForce().download == 1_000)
    }

    @Test(
        "a window that pauses ends what runs and starts nothing; after it everything goes on, and no attempt is burned")
    func pause() async throws {
        let manual = ManualClock()
        manual.advance(by: Self.midnight + Self.hour - 60_000 - manual.now)
        let server = try ScriptedServer(["/a": [.hang, .status(200, body: "x")], "/b": [.status(200, body: "y")]])
        let fixture = try await Self.fixture(manual) {
            $0.schedule = Schedule([ScheduleWindow(from: 60, to: 120, pauses: true)])
        }
        let running = try await fixture.add(server.url("/a"))
        try await eventually(that: "it runs") { try await fixture.status(running).state == .active }
        try await eventually(that: "the window begins", every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try await fixture.status(running).reason == .scheduled
        }
        let queued = try await fixture.add(server.url("/b"))
        for id in [running, queued] {
            let status = try await fixture.status(id)
            #expect((status.state, status.reason) == (.queued, .scheduled))
            #expect((status.notBefore, status.attempts) == (Self.midnight + 2 * Self.hour, 0))
        }
        #expect(server.requests().count == 1)
        #expect(await fixture.queue.schedulePause() == SchedulePause(until: Self.midnight + 2 * Self.hour))
        try await eventually(that: "the window ends", every: .milliseconds(5)) {
            manual.advance(by: 60_000)
            return try await fixture.status(queued).state == .completed
        }
        #expect(try await fixture.completed(running).attempts == 1)
        #expect(await fixture.queue.schedulePause() == nil)
    }

    @Test("changed settings count at once: rates, slots and where files go")
    func applied() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "x")], "/hang": [.hang, .hang]])
        let fixture = try await Self.fixture(ManualClock()) { $0.activeTasks = 1 }
        let running = try await fixture.add(server.url("/hang"))
        try await eventually(that: "it runs") { try await fixture.status(running).state == .active }
        let waiting = try await fixture.add(server.url("/a"))
        #expect(try await fixture.status(waiting).state == .queued)
        var settings = fixture.settings
        settings.rates = TransferRates(download: 5_000, upload: 6_000)
        settings.activeTasks = 4
        settings.connectionsPerHost = 3
        _ = try await fixture.queue.apply(settings, session: SessionConfiguration())
        #expect(try await fixture.completed(waiting).state == .completed)
        // A running task continues on its original session.
        #expect(try await fixture.status(running).state == .active)
        let rates = await fixture.queue.ratesInForce()
        #expect((rates.download, rates.upload) == (5_000, 6_000))
        await fixture.queue.stop()
    }

    @Test("the rate of a task that runs is changed without stopping it")
    func taskRate() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer(["/a": [.serve(resource)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.limit = 1 }
        try await eventually(that: "it runs") { try await fixture.status(id).phase == .transferring }
        var changes = TaskChanges()
        changes.limit = .takeBack
        _ = try await fixture.queue.update(id, by: changes, for: QueueFixture.me)
        let task = try await fixture.completed(id)
        #expect(task.attempts == 1 && server.requests().count == 1)
    }
}
