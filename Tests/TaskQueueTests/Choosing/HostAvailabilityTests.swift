import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue
@testable import TaskStore
@testable import Transfer

@Suite("Hosts that nothing is started of")
struct HostAvailabilityTests {
    private static let policy = RetryPolicy(attempts: 10, baseDelay: 1_000, maximumDelay: 600_000)

    /// Returns two tasks of different hosts.
    private func works() async throws -> (fixture: QueueFixture, works: [TaskWork]) {
        let fixture = try await QueueFixture()
        let urls = ["http://127.0.0.1:1/a", "http://127.0.0.1:2/a"]
        var works: [TaskWork] = []
        for url in urls {
            let id = try await fixture.add(url) { $0.paused = true }
            works.append(try #require(try fixture.store.work(for: id)))
        }
        return (fixture, works)
    }

    @Test("a host to which there is no way is left alone for a while, alone, and opens with another network")
    func unreachable() async throws {
        let (fixture, works) = try await works()
        var gate = HostAvailability(policy: Self.policy)
        gate.record(TransferError(.unreachable, "no way"), of: works[0], now: 1_000)
        #expect(
            gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: 1_000)
                && !gate.isOnHold(works[1].hostFingerprint, owner: QueueFixture.me.uid, now: 1_000))
        #expect(gate.hostsOnHold(for: QueueFixture.me.uid, now: 1_000) == [works[0].hostFingerprint])
        #expect(gate.nextHoldEnd(now: 1_000) == 5_000)
        #expect(
            !gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: 5_000)
                && gate.nextHoldEnd(now: 5_000) == nil)
        gate.record(TransferError(.resolverUnavailable, "no name server"), of: works[0], now: 6_000)
        gate.networkChanged()
        #expect(!gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: 6_000))
        gate.record(TransferError(.unreachable, "no way"), of: works[0], now: 7_000)
        gate.record(nil, of: works[0], now: 7_001)
        #expect(!gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: 7_001))
        await fixture.queue.stop()
    }

    @Test("each host on hold is told with its cause and its end")
    func held() async throws {
        let (fixture, works) = try await works()
        var gate = HostAvailability(policy: Self.policy)
        #expect(gate.heldHosts(now: 1_000).isEmpty)
        gate.record(TransferError(.unreachable, "no way"), of: works[0], now: 1_000)
        for _ in 0..<5 { gate.record(TransferError(.cannotConnect, "refused"), of: works[1], now: 1_000) }
        let (first, second) = (works[0], works[1])
        #expect(
            gate.heldHosts(now: 1_000).sorted { $0.host < $1.host } == [
                HeldHost(fingerprint: first.hostFingerprint, host: "http://127.0.0.1:1", cause: .noRoute, until: 5_000),
                HeldHost(
                    fingerprint: second.hostFingerprint, host: "http://127.0.0.1:2", cause: .failures, until: 2_000),
            ])
        gate.admit(second.hostFingerprint, now: 3_000)
        #expect(gate.heldHosts(now: 3_000).contains { $0.cause == .probe && $0.until == nil })
        #expect(gate.heldHosts(now: 100_000).isEmpty)
        await fixture.queue.stop()
    }

    @Test("an ending speaks for the task's own host, not where another server or a proxy of its owner's brought it")
    func responsible() async throws {
        let (fixture, works) = try await works()
        let id = try await fixture.add("http://127.0.0.1:1/b") {
            $0.paused = true
            $0.proxy = "http://127.0.0.1:9"
        }
        let proxied = try #require(try fixture.store.work(for: id))
        let refused = TransferError(.cannotConnect, "refused")
        let here = refused.named(by: works[0].host)
        let elsewhere = refused.named(by: works[1].host)
        #expect(works[0].responsibleHost(for: nil) == .own && works[0].responsibleHost(for: refused) == .own)
        #expect(
            works[0].responsibleHost(for: here) == .own
                && works[0].responsibleHost(for: elsewhere) == .other(works[1].host))
        for error in [nil, refused, here, elsewhere] { #expect(proxied.responsibleHost(for: error) == .none) }

        // A host that has answered may use all slots, one that has not no more than half of them.
        let settings = QueueFixture.settings(downloads: fixture.downloads) { $0.activeTasks = 2 }
        var chooser = TaskChooser(store: fixture.store, settings: settings)
        let started = chooser.place(of: works[0], now: 0)
        let place = try #require(started)
        chooser.recordResponse(of: place)
        for error in [refused, here, elsewhere] {
            chooser.record(error, of: proxied, now: 0)
            #expect(chooser.slots.mayStart(works[0].hostFingerprint))
        }
        chooser.record(elsewhere, of: works[0], now: 0)
        #expect(chooser.slots.mayStart(works[0].hostFingerprint))
        chooser.record(refused, of: works[0], now: 0)
        #expect(!chooser.slots.mayStart(works[0].hostFingerprint))
        await fixture.queue.stop()
    }

    @Test("a host that fails five times in a row is left alone, and for longer the next time")
    func breaker() async throws {
        let (fixture, works) = try await works()
        var gate = HostAvailability(policy: Self.policy)
        for attempt in 1...5 {
            #expect(!gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: 0), "\(attempt)")
            gate.record(TransferError(.cannotConnect, "refused"), of: works[0], now: 0)
        }
        #expect(gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: 0))
        let opening = try #require(gate.nextHoldEnd(now: 0))
        #expect(!gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: opening))
        gate.admit(works[0].hostFingerprint, now: opening)
        // While one probe is pending, the other tasks wait.
        #expect(gate.isOnHold(works[0].hostFingerprint, owner: QueueFixture.me.uid, now: opening))
        gate.record(TransferError(.cannotConnect, "refused"), of: works[0], now: opening)
        #expect(try #require(gate.nextHoldEnd(now: opening)) - opening > opening)
        await fixture.queue.stop()
    }

    @Test("a task that was to probe its host and could not be read leaves that to another one")
    func unreadableProbe() async throws {
        let (fixture, works) = try await works()
        await fixture.queue.stop()
        let ids = try await fixture.queue.add(
            ["a", "b"].map { TaskSpecification(url: "http://127.0.0.1:1/\($0)") }, by: QueueFixture.me)
        try await fixture.store.writes.perform {
            try $0.execute(sql: "UPDATE task SET specification = '{' WHERE id = \(ids[0])")
        }
        let settings = QueueFixture.settings(downloads: fixture.downloads) { $0.activeTasks = 2 }
        var chooser = TaskChooser(store: fixture.store, settings: settings)
        let refused = TransferError(.cannotConnect, "refused")
        for _ in 1...5 { chooser.record(refused, of: works[0], now: 0) }
        let opening = try #require(chooser.gate.nextHoldEnd(now: 0))
        let chosen = try chooser.choose(limit: 2, busy: RunTable(changes: ChangeCount()), now: opening)
        #expect(chosen.map(\.work.record.id) == [ids[1]])
        #expect(chooser.unreadable == [ids[0]])
    }

    @Test("tasks that were chosen before the store failed give their places back")
    func placesAfterFailure() async throws {
        let (fixture, _) = try await works()
        await fixture.queue.stop()
        // One more than the number that is read at a time.
        let tasks = (0...512).map { TaskSpecification(url: "http://127.0.0.1:1/\($0)") }
        _ = try await fixture.queue.add(tasks, by: QueueFixture.me)
        let settings = QueueFixture.settings(downloads: fixture.downloads) {
            $0.activeTasks = 2_000
            $0.connectionsPerHost = 2_000
        }
        var chooser = TaskChooser(store: fixture.store, settings: settings)
        let busy = RunTable(changes: ChangeCount())
        // The number of tasks that the host may have is known once the first has been chosen.
        for limit in [1] + Array(repeating: 60, count: 8) {
            let count = try chooser.choose(limit: limit, busy: busy, now: 0).count
            #expect(count == limit)
        }
        try await fixture.store.writes.perform { try $0.execute(sql: "ALTER TABLE task RENAME TO elsewhere") }
        #expect(throws: StoreError.self) { try chooser.choose(limit: 60, busy: busy, now: 0) }
        #expect(chooser.slots.running == 481)
    }

    /// Returns an error of a host that asks for a delay of this many seconds.
    private static func asking(_ seconds: Int64) -> TransferError {
        TransferError(.httpStatus, "busy", httpStatus: 503, retryAfter: seconds)
    }

    private func work(_ fixture: QueueFixture, _ path: String, by caller: Caller) async throws -> TaskWork {
        let id = try await fixture.add("http://127.0.0.1:1/" + path, by: caller) { $0.paused = true }
        return try #require(try fixture.store.work(for: id))
    }

    @Test("F83: a requested delay holds the owner's tasks alone, and ends with the task that met it")
    func ownDelay() async throws {
        let fixture = try await QueueFixture()
        let (me, other) = (QueueFixture.me, QueueFixture.administrator)
        let first = try await work(fixture, "a", by: me)
        let second = try await work(fixture, "b", by: me)
        let host = first.hostFingerprint
        var gate = HostAvailability(policy: Self.policy)
        gate.record(Self.asking(3_600), of: first, now: 0)
        gate.record(Self.asking(60), of: second, now: 0)
        #expect(gate.isOnHold(host, owner: me.uid, now: 3_599_999))
        #expect(!gate.isOnHold(host, owner: other.uid, now: 0) && gate.hostsOnHold(for: other.uid, now: 0).isEmpty)
        #expect(gate.hold(of: host, owner: me.uid, now: 0) == 3_600_000 && gate.nextHoldEnd(now: 0) == 3_600_000)
        #expect(gate.heldHosts(now: 0).map(\.owner) == [me.uid])
        #expect(gate.endDelays(causedBy: [first.record.id, TaskID(99)], now: 0) == [first.record.id])
        #expect(gate.hold(of: host, owner: me.uid, now: 0) == 60_000)
        gate.record(nil, of: second, now: 0)
        #expect(!gate.isOnHold(host, owner: me.uid, now: 0))
        // The delay of a removed task is not stored either.
        #expect(gate.drainUnsavedHolds(offset: 0) == [])
        await fixture.queue.stop()
    }

    @Test("F83: what two owners met holds the host for all, for max-delay at most, until one of their tasks ends")
    func sharedDelay() async throws {
        let fixture = try await QueueFixture()
        let (me, other) = (QueueFixture.me, QueueFixture.administrator)
        let mine = try await work(fixture, "a", by: me)
        let theirs = try await work(fixture, "b", by: other)
        let host = mine.hostFingerprint
        var gate = HostAvailability(policy: Self.policy)
        gate.record(Self.asking(86_400), of: mine, now: 0)
        gate.record(Self.asking(86_400), of: theirs, now: 1_000)
        #expect(gate.isOnHold(host, owner: 7, now: 599_999) && !gate.isOnHold(host, owner: 7, now: 600_000))
        #expect(gate.isOnHold(host, owner: me.uid, now: 600_000))
        _ = gate.endDelays(causedBy: [mine.record.id], now: 2_000)
        #expect(!gate.isOnHold(host, owner: 7, now: 2_000) && gate.isOnHold(host, owner: other.uid, now: 2_000))
        await fixture.queue.stop()
    }

    @Test("whoever wants a host contacted now ends her own delays and what holds everybody, not another owner's delays")
    func endedByOwner() async throws {
        let fixture = try await QueueFixture()
        let (me, other) = (QueueFixture.me, QueueFixture.administrator)
        let mine = try await work(fixture, "a", by: me)
        let theirs = try await work(fixture, "b", by: other)
        let host = mine.hostFingerprint
        var gate = HostAvailability(policy: Self.policy)
        let none = gate.endHold(host, of: me.uid, now: 0)
        #expect(none?.host == nil)
        for work in [mine, theirs] { gate.record(Self.asking(600), of: work, now: 0) }
        let ended = gate.endHold(host, of: me.uid, now: 0)
        #expect(ended?.host == "http://127.0.0.1:1" && ended?.tasks == [mine.record.id])
        #expect(!gate.isOnHold(host, owner: me.uid, now: 0) && !gate.isOnHold(host, owner: 7, now: 0))
        #expect(gate.isOnHold(host, owner: other.uid, now: 0))
        await fixture.queue.stop()
    }

    @Test("F83: failures of one task with a status put no host on hold, those of several do")
    func statuses() async throws {
        let fixture = try await QueueFixture()
        var gate = HostAvailability(policy: Self.policy)
        let failed = TransferError(.httpStatus, "failed", httpStatus: 500)
        let first = try await work(fixture, "a", by: QueueFixture.me)
        for _ in 0..<20 { gate.record(failed, of: first, now: 0) }
        #expect(!gate.isOnHold(first.hostFingerprint, owner: 7, now: 0))
        for path in ["b", "c", "d", "e"] {
            gate.record(failed, of: try await work(fixture, path, by: QueueFixture.me), now: 0)
        }
        #expect(gate.isOnHold(first.hostFingerprint, owner: 7, now: 0))
        await fixture.queue.stop()
    }

    @Test("F82: a proxy that accepts no connection is held, with the hosts behind it, and opens with a success")
    func proxy() async throws {
        let (fixture, works) = try await works()
        var gate = HostAvailability(policy: Self.policy)
        let dead = TransferError(.cannotConnect, "refused").ofProxy("http://127.0.0.1:9")
        #expect(works[0].responsibleHost(for: dead) == .proxy("http://127.0.0.1:9"))
        for _ in 0..<4 { gate.record(dead, of: works[0], now: 0) }
        #expect(!gate.isOnHold(works[0].hostFingerprint, owner: 1, now: 0))
        gate.record(dead, of: works[1], now: 0)
        for work in works { #expect(gate.isOnHold(work.hostFingerprint, owner: 1, now: 0)) }
        let held = try #require(gate.heldHosts(now: 0).first)
        #expect(held.host == "http://127.0.0.1:9" && held.cause == .failures)
        #expect(held.holds(works[1].hostFingerprint, of: 5) && !held.holds(77, of: 5))
        // One task probes the proxy on behalf of all hosts behind it.
        gate.admit(works[0].hostFingerprint, now: 1_000)
        #expect(gate.isOnHold(works[1].hostFingerprint, owner: 1, now: 1_000))
        gate.record(nil, of: works[0], now: 1_100)
        for work in works { #expect(!gate.isOnHold(work.hostFingerprint, owner: 1, now: 1_100)) }
        await fixture.queue.stop()
    }

    @Test("F82: a proxy whose probe fails is held for longer, and a failure of this machine says nothing of it")
    func failedProbe() async throws {
        let (fixture, works) = try await works()
        var gate = HostAvailability(policy: Self.policy)
        let dead = TransferError(.cannotConnect, "refused").ofProxy("http://127.0.0.1:9")
        for _ in 0..<5 { gate.record(dead, of: works[0], now: 0) }
        let opening = try #require(gate.nextHoldEnd(now: 0))
        gate.record(TransferError(.diskFull, "full"), of: works[0], now: 1)
        #expect(gate.isOnHold(works[0].hostFingerprint, owner: 1, now: 1))
        gate.admit(works[0].hostFingerprint, now: opening)
        gate.record(dead, of: works[0], now: opening)
        #expect(try #require(gate.nextHoldEnd(now: opening)) - opening > opening)
        await fixture.queue.stop()
    }
}
