import ControlServer
import Dispatch
import Glibc
import Synchronization
import Testing

@testable import dld

@Suite("The group of administrators")
struct AdministratorGroupTests {
    /// The databases, and the time.
    private final class Place: Sendable {
        let members = Mutex<Set<UInt32>>([])
        let lookups = Mutex<Int>(0)
        let time = Mutex(ContinuousClock.now)
        /// Whether the databases do not answer.
        let isSilent = Mutex(false)
    }

    private let place = Place()

    private func group() -> AdministratorGroup {
        AdministratorGroup(
            gid: 70,
            lookUp: { [place] uid in
                place.lookups.withLock { $0 += 1 }
                return place.members.withLock { $0.contains(uid) }
            }, now: { [place] in place.time.withLock { $0 } })
    }

    private func peer(_ uid: UInt32, gid: UInt32 = 100, _ groups: [UInt32] = []) -> Peer {
        Peer(uid: uid, gid: gid, pid: 1, supplementaryGroups: groups)
    }

    @Test("a process in the group is a member, whether it is its primary group or another one")
    func process() {
        let group = group()
        #expect(group.contains(peer(1, gid: 70)))
        #expect(group.contains(peer(1, [69, 70])))
        #expect(place.lookups.withLock { $0 } == 0)
        #expect(!group.contains(peer(1, [69])))
    }

    @Test("a change of the databases counts without a reload, once the answer is old")
    func change() {
        let group = group()
        #expect(!group.contains(peer(1)))
        place.members.withLock { _ = $0.insert(1) }
        #expect(!group.contains(peer(1)))
        place.time.withLock { $0 += AdministratorGroup.lifetime }
        #expect(group.contains(peer(1)))
        #expect(!group.contains(peer(2)))
        place.members.withLock { $0 = [] }
        #expect(group.contains(peer(1)))
        place.time.withLock { $0 += AdministratorGroup.lifetime }
        #expect(!group.contains(peer(1)))
        #expect(place.lookups.withLock { $0 } == 4)
    }

    @Test("everyone who asks during a user's first lookup waits for its answer")
    func together() async {
        let group = AdministratorGroup(gid: 7) { _ in
            usleep(50_000)
            return true
        }
        let peer = peer(5)
        let answers = await withTaskGroup(of: Bool.self) { tasks in
            for _ in 0..<2 { tasks.addTask { group.contains(peer) } }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        #expect(answers == [true, true])
    }

    @Test("databases that do not answer leave the last answer in force, and are asked once", .timeLimit(.minutes(1)))
    func silence() {
        let release = DispatchSemaphore(value: 0)
        let group = AdministratorGroup(
            gid: 70,
            lookUp: { [place] _ in
                place.lookups.withLock { $0 += 1 }
                if place.isSilent.withLock({ $0 }) { release.wait() }
                return true
            }, now: { [place] in place.time.withLock { $0 } })
        #expect(group.contains(peer(1)))
        place.isSilent.withLock { $0 = true }
        place.time.withLock { $0 += AdministratorGroup.lifetime }
        for _ in 0..<100 { #expect(group.contains(peer(1))) }
        #expect(!group.contains(peer(2)), "nothing is known of another one")
        // The last one may still wait for a thread.
        #expect(place.lookups.withLock { $0 } <= 3)
        for _ in 0..<2 { release.signal() }
    }
}
