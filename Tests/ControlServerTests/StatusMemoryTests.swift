import ControlProtocol
import Synchronization
import Testing

@testable import ControlServer

@Suite("The last answers to daemon.status")
struct StatusMemoryTests {
    private final class ManualTime: Sendable {
        private let instant = Mutex(ContinuousClock.now)
        var now: ContinuousClock.Instant { instant.withLock { $0 } }
        func advance(_ time: Duration) { instant.withLock { $0 += time } }
    }

    private let time = ManualTime()
    private let memory: StatusMemory
    private let peer = Peer(uid: 1, gid: 2, pid: 3)

    init() { memory = StatusMemory { [time] in time.now } }

    private func number(_ answer: EncodedResult?) -> Int? { answer?.value as? Int }

    @Test("an answer is used again for its lifetime, by any process of the user with the same groups")
    func lifetime() throws {
        #expect(memory.answer(for: peer, change: 0).answer == nil)
        memory.keep(try EncodedResult(7), for: peer, change: 0)
        #expect(number(memory.answer(for: peer, change: 0).answer) == 7)
        #expect(number(memory.answer(for: Peer(uid: 1, gid: 2, pid: 4), change: 0).answer) == 7)
        time.advance(StatusMemory.lifetime)
        #expect(memory.answer(for: peer, change: 0).answer == nil)
    }

    @Test("no answer is used for another user or another set of groups")
    func audiences() throws {
        memory.keep(try EncodedResult(7), for: peer, change: 0)
        #expect(memory.answer(for: Peer(uid: 2, gid: 2, pid: 3), change: 0).answer == nil)
        #expect(memory.answer(for: Peer(uid: 1, gid: 1, pid: 3), change: 0).answer == nil)
        #expect(
            memory.answer(for: Peer(uid: 1, gid: 2, pid: 3, supplementaryGroups: [9]), change: 0).answer == nil)
    }

    @Test("no answer is used after a change, even one that was kept after the change but begun before")
    func changes() throws {
        memory.keep(try EncodedResult(7), for: peer, change: 4)
        #expect(memory.answer(for: peer, change: 5).answer == nil)
        memory.keep(try EncodedResult(8), for: peer, change: 5)
        #expect(number(memory.answer(for: peer, change: 5).answer) == 8)
    }

    @Test("one caller is told to obtain a new answer before the old one expires")
    func renewal() throws {
        memory.keep(try EncodedResult(7), for: peer, change: 0)
        #expect(!memory.answer(for: peer, change: 0).isDueAnew)
        time.advance(StatusMemory.renewalAge)
        #expect(memory.answer(for: peer, change: 0).isDueAnew)
        let second = memory.answer(for: peer, change: 0)
        #expect(!second.isDueAnew && number(second.answer) == 7)
        memory.keep(try EncodedResult(8), for: peer, change: 0)
        time.advance(StatusMemory.renewalAge)
        #expect(memory.answer(for: peer, change: 0).isDueAnew)
        memory.forget(peer)
        #expect(memory.answer(for: peer, change: 0).answer == nil)
    }

    @Test("the answers of many users are bounded")
    func capacity() throws {
        let users = (0...UInt32(StatusMemory.capacity)).map { Peer(uid: $0, gid: 0, pid: 1) }
        for user in users { memory.keep(try EncodedResult(Int(user.uid)), for: user, change: 0) }
        #expect(users.count { memory.answer(for: $0, change: 0).answer != nil } <= StatusMemory.capacity)
    }
}
