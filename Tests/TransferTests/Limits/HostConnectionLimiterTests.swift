import Testing

@testable import Transfer

@Suite("So many at a host at once")
struct HostConnectionLimiterTests {
    @Test("the limit holds for each host, and who leaves lets the next in")
    func limit() {
        var gate = HostConnectionLimiter(limit: 2)
        let entered = (0..<5).map { gate.enter($0, host: "a", priority: 0.5) }
        #expect(entered == [true, true, false, false, false])
        let other = gate.enter(9, host: "b", priority: 0)
        #expect(other)
        let next = [
            gate.release(0), gate.release(1), gate.release(2), gate.release(3), gate.release(4), gate.release(9),
        ]
        #expect(next == [2, 3, 4, nil, nil, nil])
        #expect(gate.isEmpty)
    }

    @Test("a host may have a limit of its own")
    func ownLimit() {
        var gate = HostConnectionLimiter(limit: 1, limits: HostTable(["a": 2, "b:81": 0]))
        let entered = (0..<3).map { gate.enter($0, host: "http://a:80", priority: 0.5) }
        #expect(entered == [true, true, false])
        let next = [gate.release(0), gate.release(1)]
        #expect(next == [2, nil])
        let borrowed = [gate.borrow("http://a:80", for: 0), gate.borrow("http://a:80", for: 0)]
        #expect(borrowed == [true, false])
        // The limit is at least one.
        let others = [9, 10].map { gate.enter($0, host: "http://b:81", priority: 0.5) }
        #expect(others == [true, false])
    }

    @Test("higher priority goes first, and among equals the one that waits longest")
    func priority() {
        var gate = HostConnectionLimiter(limit: 1)
        _ = gate.enter(0, host: "a", priority: 0)
        for (task, priority) in [(1, 0.5), (2, 0.9), (3, 0.1), (4, 0.9), (5, 0.5)] {
            _ = gate.enter(task, host: "a", priority: priority)
        }
        var order: [Int] = []
        var next = gate.release(0)
        while let task = next {
            order.append(task)
            next = gate.release(task)
        }
        #expect(order == [2, 4, 1, 5, 3])
        #expect(gate.isEmpty)
    }

    @Test("one that gives up is passed over, and one that is in cannot give up")
    func givingUp() {
        var gate = HostConnectionLimiter(limit: 1)
        _ = gate.enter(0, host: "a", priority: 0)
        _ = gate.enter(1, host: "a", priority: 0)
        _ = gate.enter(2, host: "a", priority: 0)
        let gaveUp = [gate.giveUp(1), gate.giveUp(1), gate.giveUp(0), gate.giveUp(7)]
        #expect(gaveUp == [true, false, false, false])
        let next = [gate.release(0), gate.release(2)]
        #expect(next == [2, nil])
        #expect(gate.isEmpty)
    }

    @Test("room is offered to a task that was refused it, once for each request, in the order of their asking")
    func offers() {
        var gate = HostConnectionLimiter(limit: 4)
        for task in 0..<3 { _ = gate.enter(task, host: "a", priority: 0.5) }
        let borrowed = [0, 1, 2, 1, 2].map { gate.borrow("a", for: $0) }
        #expect(borrowed == [true, false, false, false, false])
        let none = gate.offer("a")
        #expect(none == nil)
        _ = gate.giveBack("a")
        let offered = [gate.offer("a"), gate.offer("a"), gate.offer("a"), gate.offer("b")]
        #expect(offered == [1, 2, nil, nil])
        // A task that waits to be admitted takes precedence, and the room that it takes is not offered.
        let again = [gate.borrow("a", for: 1), gate.borrow("a", for: 2)]
        #expect(again == [true, false])
        _ = gate.enter(3, host: "a", priority: 0.5)
        let next = gate.giveBack("a")
        let taken = gate.offer("a")
        #expect(next == 3 && taken == nil)
        #expect(gate.host(of: 3) == "a" && gate.host(of: 9) == nil)
        // A task that was not refused may wait as well; an unknown task may not.
        for task in [0, 9, 0] { gate.expect("b", for: task) }
        let expected = [gate.offer("b"), gate.offer("b")]
        #expect(expected == [0, nil])
    }

    @Test("no room is offered to a task that has left, or goes on under another number")
    func offersToNobody() {
        var gate = HostConnectionLimiter(limit: 3)
        for task in 0..<3 { _ = gate.enter(task, host: "a", priority: 0.5) }
        for task in 0..<3 { _ = gate.borrow("a", for: task) }
        gate.rename(0, to: 7)
        _ = gate.release(1)
        let offered = [gate.offer("a"), gate.offer("a")]
        #expect(offered == [2, nil])
        _ = [gate.release(2), gate.release(7)]
        #expect(gate.isEmpty)
    }
}
