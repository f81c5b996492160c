import Testing

@testable import Transfer

@Suite("The line of a request's connections")
struct SharedTurnTests {
    @Test("one connection at a time has the place, and the others have it in turn")
    func turns() {
        let line = SharedTurn()
        var woken: [Int] = []
        let ids = (0..<3).map { _ in line.makeID() }
        func enter(_ id: Int) -> Bool { line.enter(id) { woken.append(id) } }
        #expect(ids.map(enter) == [true, false, false])
        // A repeated call takes no second place in the queue.
        #expect(!enter(ids[1]))
        line.remove(ids[0])
        #expect(woken == [ids[1]])
        // The place is reserved for the connection that was woken.
        #expect(!enter(ids[0]))
        #expect(enter(ids[1]))
        line.remove(ids[1])
        line.remove(ids[2])
        line.remove(ids[0])
        #expect(woken == [ids[1], ids[2], ids[0]])
        #expect(enter(ids[2]))
    }

    @Test("a connection that goes away waits no more, and leaves the place to the next")
    func goingAway() {
        let line = SharedTurn()
        var woken: [Int] = []
        let ids = (0..<3).map { _ in line.makeID() }
        for id in ids { _ = line.enter(id) { woken.append(id) } }
        line.remove(ids[1])
        line.remove(ids[0])
        #expect(woken == [ids[2]])
    }
}
