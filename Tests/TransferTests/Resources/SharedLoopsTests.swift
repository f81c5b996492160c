import Synchronization
import TestSupport
import Testing

@testable import Curl
@testable import Transfer

@Suite("The event loops of a session's HTTP tasks")
struct SharedLoopsTests {
    @Test("a task goes to the loop with the fewest tasks, and to the first of several")
    func balance() throws {
        let loops = try SharedLoops(count: 3, faults: LoopFaults())
        defer { loops.stop() }
        let members = (0..<3).map { _ in loops.begin() }
        #expect(members[0] === loops.first)
        #expect(Set(members.map { ObjectIdentifier($0) }).count == 3)
        members[2].end()
        #expect(loops.begin() === members[2])
        members[0].end()
        members[2].end()
        #expect(loops.begin() === loops.first)
    }

    @Test("consecutive requests use one connection", arguments: [1, 2, 8])
    func consecutive(loops: Int) async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1000))]])
        var configuration = SessionConfiguration.test()
        configuration.loops = loops
        let manager = try SessionManager(configuration: configuration)
        for _ in 0..<20 { _ = try await manager.request(server.url("/f")).data }
        #expect(server.connectionsAccepted == 1)
    }

    @Test("concurrent requests open few more connections than there are requests")
    func concurrent() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1000))]])
        let manager = try SessionManager(configuration: .test())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    for _ in 0..<30 { _ = try await manager.request(server.url("/f")).data }
                }
            }
            try await group.waitForAll()
        }
        #expect(server.connectionsAccepted <= 20)
    }

    @Test("a task that is cancelled or fails makes room on its loop")
    func endings() async throws {
        let server = try ScriptedServer(["/slow": [.drip(Resource(size: 1 << 20), bytesPerSecond: 1)]])
        let manager = try SessionManager(configuration: .test())
        let resources = manager.session.resources
        for _ in 0..<4 {
            let requests = [
                manager.request(server.url("/slow")).resume(), manager.request("http://127.0.0.1:1/").resume(),
            ]
            requests[0].cancel()
            for request in requests { _ = await request.outcome }
        }
        #expect(resources.isIdle)
        #expect(resources.loops.taskCounts == [0, 0])
    }
}
