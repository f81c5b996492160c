import Testing

@testable import Transfer

@Suite("So many at a host at once")
struct HostGateTests {
    @Test("the limit holds for each host, and who leaves lets the next in")
    func limit() {
        var gate = HostGate(limit: 2)
        let entered = (0..<5).map { gate.enter($0, host: "a", priority: 0.5) }
        #expect(entered == [true, true, false, false, false])
        let other = gate.enter(9, host: "b", priority: 0)
        #expect(other)
        let next = [gate.leave(0), gate.leave(1), gate.leave(2), gate.leave(3), gate.leave(4), gate.leave(9)]
        #expect(next == [2, 3, 4, nil, nil, nil])
        #expect(gate.isEmpty)
    }

    @Test("a host may have a limit of its own")
    func ownLimit() {
        var gate = HostGate(limit: 1, limits: HostTable(["a": 2, "b:81": 0]))
        let entered = (0..<3).map { gate.enter($0, host: "http://a:80", priority: 0.5) }
        #expect(entered == [true, true, false])
        let next = [gate.leave(0), gate.leave(1)]
        #expect(next == [2, nil])
        let borrowed = [gate.borrow("http://a:80"), gate.borrow("http://a:80")]
        #expect(borrowed == [true, false])
        // At least one.
        let others = [9, 10].map { gate.enter($0, host: "http://b:81", priority: 0.5) }
        #expect(others == [true, false])
    }

    @Test("higher priority goes first, and among equals the one that waits longest")
    func priority() {
        var gate = HostGate(limit: 1)
        _ = gate.enter(0, host: "a", priority: 0)
        for (task, priority) in [(1, 0.5), (2, 0.9), (3, 0.1), (4, 0.9), (5, 0.5)] {
            _ = gate.enter(task, host: "a", priority: priority)
        }
        var order: [Int] = []
        var next = gate.leave(0)
        while let task = next {
            order.append(task)
            next = gate.leave(task)
        }
        #expect(order == [2, 4, 1, 5, 3])
        #expect(gate.isEmpty)
    }

    @Test("one that gives up is passed over, and one that is in cannot give up")
    func givingUp() {
        var gate = HostGate(limit: 1)
        _ = gate.enter(0, host: "a", priority: 0)
        _ = gate.enter(1, host: "a", priority: 0)
        _ = gate.enter(2, host: "a", priority: 0)
        let gaveUp = [gate.giveUp(1), gate.giveUp(1), gate.giveUp(0), gate.giveUp(7)]
        #expect(gaveUp == [true, false, false, false])
        let next = [gate.leave(0), gate.leave(2)]
        #expect(next == [2, nil])
        #expect(gate.isEmpty)
    }
}
