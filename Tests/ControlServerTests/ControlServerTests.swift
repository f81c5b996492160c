import ControlProtocol
import Glibc
import Synchronization
import TaskModel
import TestSupport
import Testing

@testable import ControlServer

@Suite("The server as a whole")
struct ControlServerTests {
    @Test("a thousand idle connections keep nobody from being served (A15)")
    func thousandIdle() async throws {
        var limit = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        try #require(limit.rlim_cur >= 4096)
        try await withServer(limits: { $0.perUser = 1100 }) { _, path in
            var idle: [TestClient] = []
            for _ in 0..<1000 { idle.append(try TestClient(connectingTo: path)) }
            let client = try TestClient(connectingTo: path)
            for number in 0..<100 { #expect(try await client.ask(request(number)) == acknowledgement(number)) }
            #expect(try await idle[0].ask(request(1)) == acknowledgement(1))
            #expect(try await idle[999].ask(request(1)) == acknowledgement(1))
        }
    }

    @Test("past the limit the longest idle connection makes room, one with a subscription does not")
    func evictsIdle() async throws {
        let (events, _) = AsyncStream.makeStream(of: TaskEvent.self)
        let handler = ScriptedHandler(subscriptions: { _, _ in .success(EventSubscription(last: 0, events: events)) })
        try await withServer(handler, limits: { $0.perUser = 3 }) { _, path in
            let subscriber = try TestClient(connectingTo: path)
            _ = try await subscriber.ask(#"{"jsonrpc":"2.0","id":1,"method":"events.subscribe"}"#)
            let first = try TestClient(connectingTo: path)
            #expect(try await first.ask(request(1)) == acknowledgement(1))
            let second = try TestClient(connectingTo: path)
            #expect(try await second.ask(request(1)) == acknowledgement(1))
            #expect(try await first.ask(request(2)) == acknowledgement(2))
            let third = try TestClient(connectingTo: path)
            #expect(try await third.ask(request(1)) == acknowledgement(1))
            #expect(try await second.line() == nil)
            #expect(try await first.ask(request(3)) == acknowledgement(3))
            #expect(try await subscriber.ask(request(4)) == acknowledgement(4))
        }
    }

    @Test("where none is idle the new connection is told so and closed")
    func refusesWhenFull() async throws {
        let gate = Gate()
        let begun = Gate()
        let handler = ScriptedHandler(commands: { _, _ in
            await begun.open()
            await gate.wait()
            return .success(Acknowledgement())
        })
        try await withServer(handler, limits: { $0.perUser = 1 }) { _, path in
            let busy = try TestClient(connectingTo: path)
            try await busy.send(request(1) + "\n")
            await begun.wait()
            let refused = try TestClient(connectingTo: path)
            #expect(try await refused.line()?.contains(#""code":-32004,"data":{"code":"quota"}"#) == true)
            #expect(try await refused.line() == nil)
            await gate.open()
            #expect(try await busy.line() == acknowledgement(1))
        }
    }

    @Test("it serves a socket that listens already beside one that it makes, and unlinks only its own")
    func severalSockets() async throws {
        try await withTemporaryDirectory { directory in
            let passed = try ListeningSocket(
                making: ListeningSocketPath(path: directory + "/passed", replacesStale: false))
            try #require(listen(passed.descriptor, 16) == 0)
            let made = ListeningSocketPath(path: directory + "/made", replacesStale: false)
            let server = ControlServer(
                configuration: .init(sockets: [.descriptor(passed.descriptor), .path(made)], authorize: { _ in true }),
                handler: ScriptedHandler(), logger: quietLogger)
            try await server.start()
            for name in ["/passed", "/made"] {
                let client = try TestClient(connectingTo: directory + name)
                #expect(try await client.ask(request(1)) == acknowledgement(1))
            }
            await #expect(throws: ControlServer.AlreadyStarted.self) { try await server.start() }
            await server.shutdown()
            #expect(access(directory + "/made", F_OK) != 0)
            #expect(access(directory + "/passed", F_OK) == 0)
            // Another process closes the last descriptor of the socket.
            try await eventually(that: "nobody listens any more") {
                (try? TestClient(connectingTo: directory + "/passed")) == nil
            }
        }
    }

    @Test("a start that fails leaves no socket behind")
    func failedStart() async throws {
        try await withTemporaryDirectory { directory in
            let first = ListeningSocketPath(path: directory + "/first", replacesStale: false)
            let second = ListeningSocketPath(path: directory + "/missing/sub/second", replacesStale: false)
            let server = ControlServer(
                configuration: .init(sockets: [.path(first), .path(second)], authorize: { _ in true }),
                handler: ScriptedHandler(), logger: quietLogger)
            await #expect(throws: ListeningSocketError.self) { try await server.start() }
            #expect(access(directory + "/first", F_OK) != 0)
        }
    }

    @Test("shutting down serves a request that comes just after its connection")
    func shutdownServesArrivals() async throws {
        let limits: (inout ConnectionLimits) -> Void = {
            $0.grace = .seconds(60)
            $0.requestTime = .seconds(60)
        }
        try await withServer(ScriptedHandler(), limits: limits) { server, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(request(1) + "\n")
            #expect(try await client.line() == acknowledgement(1))
            async let ended: Void = server.shutdown()
            try await eventually(that: "it accepts nobody") { (try? TestClient(connectingTo: path)) == nil }
            try await client.send(request(2) + "\n")
            #expect(try await client.line() == acknowledgement(2))
            client.leave()
            await ended
        }
    }

    @Test("shutting down lets the answer under way go out, takes nothing new and ends idle connections")
    func shutdownDrains() async throws {
        let begun = Gate()
        let gate = Gate()
        let calls = Mutex(0)
        let handler = ScriptedHandler(commands: { _, _ in
            calls.withLock { $0 += 1 }
            await begun.open()
            await gate.wait()
            return .success(Acknowledgement())
        })
        try await withServer(handler, limits: { $0.grace = .seconds(20) }) { server, path in
            let idle = try TestClient(connectingTo: path)
            let busy = try TestClient(connectingTo: path)
            try await busy.send(request(1) + "\n" + request(2) + "\n")
            await begun.wait()
            async let ended: Void = server.shutdown()
            #expect(try await idle.line() == nil)
            #expect(throws: TestClient.Failure.self) { try TestClient(connectingTo: path) }
            await gate.open()
            #expect(try await busy.line() == acknowledgement(1))
            #expect(try await busy.line() == nil)
            await ended
            #expect(calls.withLock { $0 } == 1)
        }
    }

    @Test("shutting down does not wait for ever for a request that never ends")
    func shutdownIsBounded() async throws {
        let begun = Gate()
        let never = Gate()
        let handler = ScriptedHandler(commands: { _, _ in
            await begun.open()
            await never.wait()
            return .success(Acknowledgement())
        })
        try await withServer(handler, limits: { $0.grace = .milliseconds(10) }) { server, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(request(1) + "\n")
            await begun.wait()
            await server.shutdown()
            #expect(try await client.line() == nil)
            await never.open()
        }
    }
}
