import Curl
import TestSupport
import Testing

@testable import Transfer

@Suite("Loops of file servers", .timeLimit(.minutes(1)))
struct RemoteLoopsTests {
    private func loops(linger: Int64) throws -> (loops: RemoteLoops, otherwise: TransferLoop) {
        (RemoteLoops(faults: LoopFaults(), linger: linger), try TransferLoop(name: "otherwise"))
    }

    @Test("A loop without a task ends")
    func ends() async throws {
        let (loops, otherwise) = try loops(linger: 0)
        defer { otherwise.stop() }
        var lease: LoopLease? = loops.lease(for: "ftp://a.test/f", task: 1, otherwise: otherwise)
        let loop = try #require(lease?.loop)
        #expect(loops.count == 1)
        lease = nil
        try await eventually(that: "the loop is gone") { loops.count == 0 }
        #expect(!loop.post { _ in })
    }

    @Test("A loop stays while one of its tasks does, and for a while after the last")
    func stays() throws {
        let (loops, otherwise) = try loops(linger: 60_000)
        defer {
            loops.stop()
            otherwise.stop()
        }
        var first: LoopLease? = loops.lease(for: "sftp://a.test/f", task: 1, otherwise: otherwise)
        let loop = try #require(first?.loop)
        let second = loops.lease(for: "sftp://anna@A.test/g", task: 1 + RemoteLoops.groupSize, otherwise: otherwise)
        #expect(second.loop === loop)
        first = nil
        #expect(loop.post { _ in })
        #expect(loops.lease(for: "sftp://a.test/f", task: 1, otherwise: otherwise).loop === loop)
        #expect(loops.count == 1)
    }

    @Test("Tasks that follow one another have different loops of a server's group")
    func spreads() throws {
        let (loops, otherwise) = try loops(linger: 60_000)
        defer {
            loops.stop()
            otherwise.stop()
        }
        let leases = (0..<32).map { loops.lease(for: "ftp://a.test/\($0)", task: $0, otherwise: otherwise) }
        #expect(Set(leases.map { ObjectIdentifier($0.loop) }).count == RemoteLoops.groupSize)
        #expect(loops.count == RemoteLoops.groupSize)
    }
}
