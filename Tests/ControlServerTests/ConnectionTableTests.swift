import NIOCore
import Testing

@testable import ControlServer

@Suite("Who makes room for a new connection")
struct ConnectionTableTests {
    private final class Fake: TabledConnection {
        let peer: Peer
        var idleSince: NIODeadline?
        var isClosed = false

        init(uid: UInt32 = 1, idleSince: UInt64? = nil) {
            peer = Peer(uid: uid, gid: uid, pid: 1)
            self.idleSince = idleSince.map { .uptimeNanoseconds($0) }
        }

        func close() { isClosed = true }
        func drain() {}
    }

    private func table(perUser: Int = 512, total: Int = 4096) -> ConnectionTable {
        var limits = ConnectionLimits()
        limits.perUser = perUser
        limits.total = total
        return ConnectionTable(limits: limits)
    }

    @Test("512 connections of one user and 4,096 in all are kept")
    func defaults() {
        let table = ConnectionTable(limits: ConnectionLimits())
        let fakes = (0..<8).flatMap { uid in (0..<512).map { _ in Fake(uid: UInt32(uid), idleSince: 1) } }
        #expect(fakes.allSatisfy { table.admit($0) })
        #expect(table.count == 4096)
        #expect(!fakes.contains { $0.isClosed })
        #expect(table.admit(Fake(uid: 9)))
        #expect(table.count == 4096)
        #expect(fakes.count { $0.isClosed } == 1)
    }

    @Test("past a user's limit his longest idle connection is closed, and nobody else's")
    func perUser() {
        let table = table(perUser: 3)
        let stranger = Fake(uid: 2, idleSince: 1)
        let mine = [Fake(idleSince: 30), Fake(idleSince: 20), Fake()]
        #expect(([stranger] + mine).allSatisfy { table.admit($0) })
        #expect(table.admit(Fake(idleSince: 40)))
        #expect(mine.map(\.isClosed) == [false, true, false])
        #expect(!stranger.isClosed)
    }

    @Test("where none is idle the new one is refused")
    func noneIdle() {
        let table = table(perUser: 2)
        #expect(table.admit(Fake()))
        #expect(table.admit(Fake()))
        #expect(!table.admit(Fake()))
        #expect(table.count == 2)
    }

    @Test("past the limit of all the longest idle of anybody is closed")
    func total() {
        let table = table(total: 2)
        let old = Fake(uid: 1, idleSince: 1)
        let young = Fake(uid: 2, idleSince: 2)
        #expect(table.admit(old))
        #expect(table.admit(young))
        #expect(table.admit(Fake(uid: 3, idleSince: 3)))
        #expect(old.isClosed)
        #expect(!young.isClosed)
    }

    @Test("where none is idle, whoever has the most connections makes room for one who has few")
    func fewAndMany() {
        let table = table(perUser: 8, total: 8)
        let many = (0..<6).map { _ in Fake(uid: 1) }
        #expect((many + [Fake(uid: 2), Fake(uid: 2)]).allSatisfy { table.admit($0) })
        #expect(!table.admit(Fake(uid: 1)))
        #expect(table.admit(Fake(uid: 3)))
        #expect(many.count { $0.isClosed } == 1)
        #expect(table.count == 8)
    }

    @Test("for lack of descriptors the longest idle connection is closed, and none that is at work (A19)")
    func descriptors() {
        let table = table()
        let new = Fake(uid: 2)
        new.idleSince = .now()
        let fakes = [Fake(uid: 1), Fake(uid: 1, idleSince: 5), Fake(uid: 2, idleSince: 3), new]
        for fake in fakes { #expect(table.admit(fake)) }
        table.closeLongestIdle()
        #expect(fakes.map(\.isClosed) == [false, false, true, false])
        table.closeLongestIdle()
        table.closeLongestIdle()
        #expect(fakes.map(\.isClosed) == [false, true, true, false])
        #expect(table.count == 2)
    }

    @Test("one that has gone is counted no more, and only once")
    func remove() {
        let table = table(perUser: 1)
        let first = Fake()
        #expect(table.admit(first))
        table.remove(first)
        table.remove(first)
        #expect(table.count == 0)
        #expect(table.admit(Fake()))
        #expect(!table.admit(Fake()))
    }
}
