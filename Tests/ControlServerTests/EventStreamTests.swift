import ControlProtocol
import CoreMetrics
import FoundationEssentials
import MetricsTestKit
import Synchronization
import TaskModel
import Testing

@testable import ControlServer

@Suite("Streams of events")
struct EventStreamTests {
    private static let subscribe = #"{"jsonrpc":"2.0","id":"s","method":"events.subscribe","params":{"after":5}}"#
    private static let subscribed = #"{"id":"s","jsonrpc":"2.0","result":{"journal":"j","last":9}}"#

    private static func event(_ sequence: Int64) -> TaskEvent {
        TaskEvent(sequence: sequence, at: 1, type: .completed, id: TaskID(sequence), state: .completed)
    }

    private func sequence(_ line: String?) throws -> Int64 {
        let line = try #require(line)
        return try JSONDecoder().decode(EventNotification.self, from: Data(line.utf8)).event.sequence
    }

    /// Returns a handler with one stream, and the stream's continuation.
    private func handler(
        onEnd: @escaping @Sendable () -> Void = {}
    ) -> (ScriptedHandler, AsyncStream<TaskEvent>.Continuation) {
        let (events, continuation) = AsyncStream.makeStream(of: TaskEvent.self)
        continuation.onTermination = { _ in onEnd() }
        let handler = ScriptedHandler(subscriptions: { after, _ in
            after == 5
                ? .success(EventSubscription(last: 9, events: events)) : .failure(.refused(.invalid, "after is wrong"))
        })
        return (handler, continuation)
    }

    @Test("the answer comes first, then events in order, and requests are answered between them")
    func order() async throws {
        let (handler, continuation) = handler()
        for number in 6...9 { continuation.yield(Self.event(Int64(number))) }
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            #expect(try await client.ask(Self.subscribe) == Self.subscribed)
            for number in 6...9 { #expect(try sequence(try await client.line()) == Int64(number)) }
            #expect(try await client.ask(request(1)) == acknowledgement(1))
            continuation.yield(Self.event(10))
            #expect(
                try await client.line()
                    == #"{"jsonrpc":"2.0","method":"event","params":{"at":1,"batch":null,"bytesDone":null,"#
                    + #""bytesTotal":null,"error":null,"id":10,"key":null,"kind":null,"owner":null,"path":null,"#
                    + #""progress":null,"reason":null,"sequence":10,"state":"completed","totals":null,"#
                    + #""type":"completed","url":null}}"#)
        }
    }

    @Test("a second subscription on the same connection is refused and disturbs nothing")
    func second() async throws {
        let (handler, continuation) = handler()
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            #expect(try await client.ask(Self.subscribe) == Self.subscribed)
            #expect(try await client.ask(Self.subscribe)?.contains(#""code":-32002"#) == true)
            continuation.yield(Self.event(10))
            #expect(try sequence(try await client.line()) == 10)
        }
    }

    @Test("a user's subscriptions leave connections for commands, and one that ends makes room for another (A19)")
    func subscriptionLimit() async throws {
        let continuations = Mutex<[AsyncStream<TaskEvent>.Continuation]>([])
        let handler = ScriptedHandler(subscriptions: { _, _ in
            let (events, continuation) = AsyncStream.makeStream(of: TaskEvent.self)
            continuations.withLock { $0.append(continuation) }
            return .success(EventSubscription(last: 9, events: events))
        })
        try await withServer(handler, limits: { $0.perUser = 4 }) { _, path in
            let subscribers = try (0..<3).map { _ in try TestClient(connectingTo: path) }
            for client in subscribers { #expect(try await client.ask(Self.subscribe)?.contains("result") == true) }
            let other = try TestClient(connectingTo: path)
            let refusal = try await other.ask(Self.subscribe)
            #expect(refusal?.contains("too many subscriptions to events of this user") == true, "\(refusal ?? "")")
            #expect(try await other.ask(request(1)) == acknowledgement(1))
            continuations.withLock { $0[0].finish() }
            #expect(try await subscribers[0].line() == nil)
            #expect(try await other.ask(Self.subscribe)?.contains("result") == true)
        }
    }

    @Test("where the stream ends the connection does too, and what came before is delivered")
    func streamEnds() async throws {
        let (handler, continuation) = handler()
        continuation.yield(Self.event(6))
        continuation.finish()
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            #expect(try await client.ask(Self.subscribe) == Self.subscribed)
            #expect(try sequence(try await client.line()) == 6)
            #expect(try await client.line() == nil)
        }
    }

    @Test("a subscriber that has gone ends its stream")
    func gone() async throws {
        let ended = Gate()
        let (handler, _) = handler(onEnd: { Task { await ended.open() } })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            #expect(try await client.ask(Self.subscribe) == Self.subscribed)
            client.leave()
            await ended.wait()
        }
    }

    @Test("a subscriber that has said all it wants still gets its events")
    func halfClosed() async throws {
        let (handler, continuation) = handler()
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(Self.subscribe + "\n")
            client.shutdownWriting()
            #expect(try await client.line() == Self.subscribed)
            continuation.yield(Self.event(6))
            #expect(try sequence(try await client.line()) == 6)
            continuation.yield(Self.event(7))
            #expect(try sequence(try await client.line()) == 7)
        }
    }

    @Test("a subscriber that reads gets all of a long replay, however fast it is produced")
    func longReplay() async throws {
        let next = Mutex<Int64>(0)
        let handler = ScriptedHandler(subscriptions: { _, _ in
            let events = AsyncStream<TaskEvent>(unfolding: {
                let number = next.withLock { number in
                    number += 1
                    return number
                }
                return number <= 20_000 ? Self.event(number) : nil
            })
            return .success(EventSubscription(last: 9, events: events))
        })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            #expect(try await client.ask(Self.subscribe) == Self.subscribed)
            for number in 1...20_000 { try #require(try sequence(try await client.line()) == Int64(number)) }
            #expect(try await client.line() == nil)
        }
    }

    @Test("a subscriber that never reads costs little, disturbs nobody and is given up (A17)")
    func neverReads() async throws {
        let pulled = Mutex<Int64>(0)
        let ended = Gate()
        let handler = ScriptedHandler(subscriptions: { _, _ in
            let events = AsyncStream<TaskEvent>(
                unfolding: {
                    let number = pulled.withLock { number in
                        number += 1
                        return number
                    }
                    return Self.event(number)
                }, onCancel: { Task { await ended.open() } })
            return .success(EventSubscription(last: 9, events: events))
        })
        let metrics = TestMetrics()
        try await withMetricsFactory(metrics) {
            try await withServer(handler, limits: { $0.stalled = .seconds(1) }) { _, path in
                let stuck = try TestClient(connectingTo: path)
                try await stuck.send(Self.subscribe + "\n")
                let other = try TestClient(connectingTo: path)
                #expect(try await other.ask(request(1)) == acknowledgement(1))
                await ended.wait()
                // The limit is what the kernel and the channel buffer. Without back-pressure a second is enough for many
                // times as many events.
                #expect(pulled.withLock { $0 } < 5000)
                #expect(try await other.ask(request(2)) == acknowledgement(2))
                #expect(metrics.counterTotal(label: "dld_subscribers_dropped_total") == 1)
                #expect(try metrics.expectMeter("dld_connections").values.max() == 2)
                #expect(try await stuck.line() == Self.subscribed)
                var expected: Int64 = 1
                while let line = try await stuck.line() {
                    try #require(try sequence(line) == expected)
                    expected += 1
                }
                #expect(expected > 1)
            }
        }
    }
}
