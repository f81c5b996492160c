import Testing

@testable import TaskQueue

@Suite("Slots")
struct SlotTableTests {
    /// Returns a table in which hosts 1 to 9 have answered.
    private func slots(_ activeTasks: Int) -> SlotTable {
        var slots = SlotTable(activeTasks: activeTasks)
        for host in Int64(1)...9 { slots.set(host, isAnswering: true) }
        return slots
    }

    @Test("a host has no more than its share, all together no more than all")
    func limits() {
        var slots = slots(3)
        for _ in 0..<2 {
            #expect(slots.hasRoom && slots.mayStart(1))
            slots.start(1, of: 5)
            slots.setHost(1, name: "h") { _ in 2 }
        }
        #expect(!slots.mayStart(1) && slots.blockedHosts == [1] && slots.hasRoom)
        slots.start(2, of: 5)
        #expect(!slots.hasRoom)
        slots.end(1, of: 5, wasSilent: false)
        #expect(slots.hasRoom && slots.mayStart(1) && slots.mayStart(3) && !slots.blockedHosts.contains(1))
    }

    @Test("until it is known what a host may have, it has one; it is asked for once")
    func unknown() {
        var slots = slots(9)
        slots.start(1, of: 5)
        #expect(!slots.mayStart(1) && slots.mayStart(2))
        slots.setHost(1, name: "h") { _ in 3 }
        #expect(slots.mayStart(1))
        slots.setHost(1, name: "h") { _ in
            Issue.record("asked again")
            return 1
        }
        slots.end(1, of: 5, wasSilent: false)
        slots.start(1, of: 5)
        #expect(!slots.mayStart(1), "forgotten with its last task: it may be configured otherwise by now")
    }

    @Test("a host that never answered has half of the slots; one that fails has so again")
    func unproven() {
        var slots = SlotTable(activeTasks: 8)
        for number in 1...4 {
            #expect(slots.mayStart(1))
            slots.start(1, of: 5)
            if number == 1 { slots.setHost(1, name: "h") { _ in 16 } }
        }
        #expect(!slots.mayStart(1) && slots.mayStart(2))
        slots.set(1, isAnswering: true)
        #expect(slots.mayStart(1))
        slots.set(1, isAnswering: false)
        #expect(!slots.mayStart(1))
        var single = SlotTable(activeTasks: 1)
        #expect(single.mayStart(1))
        single.start(1, of: 5)
        #expect(!single.hasRoom)
    }

    @Test("a silent task lends its slot to other hosts only")
    func lending() {
        var slots = slots(2)
        for _ in 0..<2 {
            slots.start(1, of: 5)
            slots.setHost(1, name: "h") { _ in 9 }
        }
        #expect(!slots.hasRoom)
        slots.setSilent(true, 1)
        #expect(slots.hasRoom && !slots.mayStart(1) && slots.mayStart(2))
        #expect(slots.blockedHosts == [1])
        slots.start(2, of: 5)
        #expect(!slots.hasRoom, "one silent task lends one slot")
        slots.setSilent(false, 1)
        #expect(!slots.hasRoom, "it speaks again and has its slot")
        slots.end(2, of: 5, wasSilent: false)
        slots.end(1, of: 5, wasSilent: false)
        #expect(slots.hasRoom && slots.mayStart(1))
    }

    @Test("however many are silent, sixteen times the slots is the end")
    func cap() {
        var slots = SlotTable(activeTasks: 2)
        for host in 0..<Int64(SlotTable.lendingFactor * 2) {
            #expect(slots.hasRoom && slots.mayStart(host))
            slots.start(host, of: 5)
            slots.setSilent(true, host)
        }
        #expect(!slots.hasRoom)
        slots.end(0, of: 5, wasSilent: true)
        #expect(slots.hasRoom)
    }

    @Test("what waits for no slot takes none; as many again as there are slots, and of each owner one in any case")
    func beyond() {
        var slots = slots(2)
        for _ in 0..<2 { slots.start(1, of: 5) }
        #expect(!slots.hasRoom && slots.hasRoomBeyond(of: 5))
        for (host, owner) in [(Int64(2), UInt32(5)), (3, 6)] {
            slots.start(host, of: owner, beyond: true, isUrgent: true)
        }
        #expect(!slots.hasRoomBeyond(of: 5) && !slots.hasRoomBeyond(of: 6) && slots.hasRoomBeyond(of: 7))
        slots.end(1, of: 5, wasSilent: false)
        #expect(slots.hasRoom, "the one that ended had a slot")
        slots.end(2, of: 5, wasSilent: false, beyond: true, wasUrgent: true)
        #expect(slots.hasRoomBeyond(of: 5) && !slots.hasRoomBeyond(of: 6))
    }

    @Test("each owner has a quarter of the slots for what is urgent, and one at least")
    func urgent() {
        var slots = slots(8)
        #expect(slots.urgentPerOwner == 2 && SlotTable(activeTasks: 3).urgentPerOwner == 1)
        for host in Int64(1)...2 { slots.start(host, of: 5, isUrgent: true) }
        #expect(!slots.mayBeUrgent(of: 5) && slots.mayBeUrgent(of: 6) && !slots.hasRoomBeyond(of: 5))
        slots.end(1, of: 5, wasSilent: false, wasUrgent: true)
        #expect(slots.mayBeUrgent(of: 5))
    }

    @Test("an owner's tasks are limited, whether urgent or not, and another's are not counted")
    func perOwner() {
        var slots = SlotTable(activeTasks: 8, activeTasksPerOwner: 2)
        slots.start(1, of: 5)
        #expect(slots.hasRoom(for: 5))
        slots.start(2, of: 5, beyond: true, isUrgent: true)
        #expect(!slots.hasRoom(for: 5) && slots.hasRoom(for: 6))
        slots.end(1, of: 5, wasSilent: false)
        #expect(slots.hasRoom(for: 5))
        slots.start(1, of: 5)
        slots.apply(activeTasks: 8, activeTasksPerOwner: nil) { _ in 4 }
        #expect(slots.hasRoom(for: 5))
    }
}
