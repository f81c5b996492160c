import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Slots")
struct SlotTableTests {
    @Test("a host has no more than its share, all together no more than all")
    func limits() {
        var slots = SlotTable(activeTasks: 3, connectionsPerHost: 2)
        for _ in 0..<2 {
            #expect(slots.mayStart("a"))
            slots.start("a")
        }
        #expect(!slots.mayStart("a") && slots.closedHosts == ["a"] && slots.hasRoom)
        slots.start("b")
        #expect(!slots.hasRoom && !slots.mayStart("b") && !slots.mayStart("c"))
        slots.end("a", wasSilent: false)
        #expect(slots.mayStart("a") && slots.mayStart("c") && slots.closedHosts.isEmpty)
    }

    @Test("a host may have a share of its own")
    func ownLimit() {
        let own = HostTable(["a": 1, "*.b": 3])
        var slots = SlotTable(activeTasks: 9, connectionsPerHost: 2, hostConnections: own)
        for (host, share) in [("http://a:80", 1), ("http://x.b:80", 3), ("http://c:80", 2)] {
            for _ in 0..<share {
                #expect(slots.mayStart(host))
                slots.start(host)
            }
            #expect(!slots.mayStart(host))
        }
        #expect(slots.closedHosts.count == 3)
    }

    @Test("a silent task lends its slot to other hosts only")
    func lending() {
        var slots = SlotTable(activeTasks: 2, connectionsPerHost: 9)
        slots.start("a")
        slots.start("a")
        #expect(!slots.hasRoom)
        slots.setSilent(true, "a")
        #expect(slots.hasRoom && !slots.mayStart("a") && slots.mayStart("b"))
        #expect(slots.closedHosts == ["a"])
        slots.start("b")
        #expect(!slots.mayStart("c"), "one silent task lends one slot")
        slots.setSilent(false, "a")
        #expect(!slots.hasRoom, "it speaks again and has its slot")
        slots.end("b", wasSilent: false)
        slots.end("a", wasSilent: false)
        #expect(slots.mayStart("a"))
    }

    @Test("however many are silent, four times the slots is the end")
    func cap() {
        var slots = SlotTable(activeTasks: 2, connectionsPerHost: 1)
        for host in 0..<SlotTable.lendingFactor * 2 {
            #expect(slots.mayStart("\(host)"))
            slots.start("\(host)")
            slots.setSilent(true, "\(host)")
        }
        #expect(!slots.hasRoom && !slots.mayStart("z"))
        slots.end("0", wasSilent: true)
        #expect(slots.mayStart("z"))
    }

    @Test("a random walk agrees with a list of what runs")
    func randomWalk() {
        var generator = SeededGenerator(seed: 3)
        var slots = SlotTable(activeTasks: 5, connectionsPerHost: 3)
        var running: [(host: String, isSilent: Bool)] = []
        let hosts = ["a", "b", "c", "d"]
        for step in 0..<50_000 {
            let host = hosts[Int.random(in: 0..<hosts.count, using: &generator)]
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                if slots.mayStart(host) {
                    slots.start(host)
                    running.append((host, false))
                }
            case 2:
                guard let index = running.indices.randomElement(using: &generator) else { continue }
                running[index].isSilent.toggle()
                slots.setSilent(running[index].isSilent, running[index].host)
            default:
                guard let index = running.indices.randomElement(using: &generator) else { continue }
                let task = running.remove(at: index)
                slots.end(task.host, wasSilent: task.isSilent)
            }
            let silent = running.count { $0.isSilent }
            let hasRoom = running.count - silent < 5 && running.count < 20
            guard slots.running == running.count, slots.hasRoom == hasRoom else {
                Issue.record("step \(step): \(slots) but \(running)")
                return
            }
            for host in hosts {
                let own = running.filter { $0.host == host }
                let isClosed = own.count >= 3 || (running.count >= 5 && own.contains { $0.isSilent })
                guard slots.mayStart(host) == (hasRoom && !isClosed), slots.closedHosts.contains(host) == isClosed
                else {
                    Issue.record("step \(step), \(host): \(slots) but \(running)")
                    return
                }
            }
        }
    }
}
