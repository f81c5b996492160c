import ControlProtocol
import Glibc
import NIOCore
import Synchronization
import Testing

@testable import ControlServer

@Suite("Requests that read much of the database", .timeLimit(.minutes(1)))
struct SearchRunnerTests {
    private static func search(_ method: String) -> String {
        #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":{"filter":{"search":"q"}}}"# + "\n"
    }

    /// Waits until `condition` holds. The time limit of the suite ends it otherwise.
    private static func wait(until condition: () -> Bool) async throws {
        while !condition() { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test("A38: searches take no thread from other requests, and end with their clients")
    func searches() async throws {
        let counts = Mutex((begun: 0, ended: 0))
        let handler = ScriptedHandler(commands: { command, _ in
            guard command.search == .forResponse else { return .success(Acknowledgement()) }
            counts.withLock { $0.begun += 1 }
            // It blocks its thread as SQLite does.
            while !Task.isCancelled { usleep(1_000) }
            counts.withLock { $0.ended += 1 }
            return .success(Acknowledgement())
        })
        try await withServer(handler) { _, path in
            let clients = try (0..<3).map { _ in try TestClient(connectingTo: path) }
            for client in clients { try await client.send(Self.search("task.list")) }
            try await Self.wait { counts.withLock { $0.begun } > 0 }
            let other = try TestClient(connectingTo: path)
            for number in 0..<50 { #expect(try await other.ask(request(number)) == acknowledgement(number)) }
            // A long list is not a search.
            let list = #"{"jsonrpc":"2.0","id":7,"method":"task.list","params":{"limit":500}}"#
            #expect(try await other.ask(list) == acknowledgement(7))
            #expect(counts.withLock { $0.ended } == 0)
            for client in clients { client.leave() }
            try await Self.wait { counts.withLock { $0.begun > 0 && $0.begun == $0.ended } }
            #expect(try await other.ask(request(1)) == acknowledgement(1))
        }
    }

    @Test("changes of what a search finds are completed without their client")
    func changes() async throws {
        let gate = Gate()
        let wasCancelled = Mutex<Bool?>(nil)
        let began = Mutex(false)
        let handler = ScriptedHandler(commands: { command, _ in
            guard command.search == .forChanges else { return .success(Acknowledgement()) }
            began.withLock { $0 = true }
            await gate.wait()
            wasCancelled.withLock { $0 = Task.isCancelled }
            return .success(Acknowledgement())
        })
        try await withServer(handler) { _, path in
            let client = try TestClient(connectingTo: path)
            try await client.send(Self.search("task.pause"))
            try await Self.wait { began.withLock { $0 } }
            client.leave()
            #expect(try await client.line() == nil)
            await gate.open()
            try await Self.wait { wasCancelled.withLock { $0 } != nil }
            #expect(wasCancelled.withLock { $0 } == false)
        }
    }

    @Test("every method is a search where a filter decides how much it reads")
    func classification() throws {
        func search(_ method: String, _ parameters: String) throws -> Command.Search {
            let line = #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(parameters)}"#
            let processor = RequestProcessor(
                handler: ScriptedHandler(), peer: Peer(uid: 1, gid: 1, pid: 1),
                searches: SearchRunner(threads: HeavyThreads(count: 1)))
            guard case .single(let request, _) = try processor.decode(.init(string: line)).get() else { return .none }
            return try request.command.get().search
        }
        #expect(try search("task.list", "{}") == .none)
        #expect(try search("task.list", #"{"filter":{"states":["failed"],"batch":"b"}}"#) == .none)
        for filter in [#"{"search":"x"}"#, #"{"since":1}"#, #"{"until":1}"#] {
            #expect(try search("task.list", #"{"limit":1,"filter":\#(filter)}"#) == .forResponse)
            #expect(try search("task.count", #"{"filter":\#(filter)}"#) == .forResponse)
            for method in ["task.pause", "task.resume", "task.cancel", "task.retry", "task.remove"] {
                #expect(try search(method, #"{"filter":\#(filter)}"#) == .forChanges, "\(method)")
            }
            #expect(try search("task.update", #"{"filter":\#(filter),"changes":{"limit":1}}"#) == .forChanges)
        }
        #expect(try search("task.list", #"{"order":"queue"}"#) == .forResponse)
        #expect(try search("queue.list", "{}") == .forResponse)
        #expect(try search("events.list", "{}") == .forResponse)
        #expect(try search("task.pause", #"{"filter":{}}"#) == .none)
    }
}
