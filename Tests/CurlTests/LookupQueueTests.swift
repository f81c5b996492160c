import Testing

@testable import Curl

@Suite("Which name is looked up next")
struct LookupQueueTests {
    private typealias Asker = Resolver.Asker

    private var queue = LookupQueue(threads: 8)
    private var numbers = 0

    private mutating func ask(_ host: String, _ asker: Asker) -> Int {
        numbers += 1
        queue.add(numbers, host: host, for: asker)
        return numbers
    }

    private mutating func ask(_ hosts: [String], _ asker: Asker) {
        for host in hosts { _ = ask(host, asker) }
    }

    private mutating func all() -> [String] {
        var hosts: [String] = []
        while let host = queue.next() { hosts.append(host) }
        return hosts
    }

    @Test("F35: one party holds as many threads as stay free beside its own, and the next half of the rest")
    mutating func parties() {
        for task in 0..<10 { ask(["a\(task)"], Asker(party: "a", task: task)) }
        #expect(all() == ["a0", "a1", "a2", "a3"])
        for task in 10..<20 { ask(["b\(task)"], Asker(party: "b", task: task)) }
        #expect(all() == ["b10", "b11"])
        ask(["c"], Asker(task: 30))
        #expect(all() == ["c"])
        ask(["d"], Asker(party: "d", task: 40))
        #expect(all() == ["d"])
        ask(["e"], Asker(party: "e", task: 50))
        #expect(all().isEmpty)
        // A thread that becomes free goes to the party that has none.
        _ = queue.finish("a0")
        #expect(all() == ["e"])
    }

    @Test("the party with the fewest threads comes first, then the one whose turn was longest ago")
    mutating func order() {
        var queue = LookupQueue(threads: 64)
        for (number, party) in ["a", "a", "b", "b", "c"].enumerated() {
            queue.add(number, host: "\(party)\(number)", for: Asker(party: party, task: number))
        }
        var hosts: [String] = []
        while let host = queue.next() { hosts.append(String(host.prefix(1))) }
        #expect(Set(hosts.prefix(3)) == ["a", "b", "c"])
        #expect(hosts.dropFirst(3).sorted() == ["a", "b"])
    }

    @Test("F35: one task holds a few threads, and another's name passes those that it has waiting")
    mutating func tasks() {
        var queue = LookupQueue(threads: 64)
        for number in 0..<10 { queue.add(number, host: "a\(number)", for: Asker(task: 1)) }
        queue.add(10, host: "b", for: Asker(task: 2))
        var hosts: [String] = []
        while let host = queue.next() { hosts.append(host) }
        #expect(hosts == ["a0", "b", "a1", "a2", "a3"])
        #expect(queue.finish("a1") == [1])
        #expect(queue.next() == "a4")
        #expect(queue.next() == nil)
    }

    @Test("F35: a task's own name is looked up before those of its mirrors, and beside them")
    mutating func mirrors() {
        let mirror = Asker(task: 1, urgency: .spare)
        var queue = LookupQueue(threads: 64)
        for number in 0..<10 { queue.add(number, host: "mirror\(number)", for: mirror) }
        queue.add(10, host: "own", for: Asker(task: 1))
        var hosts: [String] = []
        while let host = queue.next() { hosts.append(host) }
        #expect(hosts == ["own", "mirror0", "mirror1"])
        _ = queue.finish("own")
        #expect(queue.next() == "mirror2")
        #expect(queue.next() == nil)
        queue.add(11, host: "elsewhere", for: Asker(task: 1))
        #expect(queue.next() == "elsewhere")
    }

    @Test("F35: mirrors' names hold a quarter of the threads, and names that are wanted get the next ones")
    mutating func spare() {
        for task in 0..<8 { ask(["mirror\(task)"], Asker(party: "a", task: task, urgency: .spare)) }
        #expect(all() == ["mirror0", "mirror1"])
        ask(["own1", "own2"], Asker(party: "a", task: 1))
        #expect(all() == ["own1", "own2"])
    }

    @Test("what nobody waits for any more is dropped before it has begun, and counts on until its end otherwise")
    mutating func withdrawn() {
        let first = ask("a", Asker(task: 1))
        let second = ask("b", Asker(task: 2))
        queue.withdraw(first)
        #expect(all() == ["b"])
        queue.withdraw(second)
        queue.withdraw(second)
        #expect(queue.count == 0)
        ask(["b"], Asker(task: 3))
        #expect(queue.next() == nil)
        #expect(queue.finish("b") == [3])
        #expect(queue.finish("b").isEmpty)
        #expect(queue.next() == nil)
    }

    @Test("a name that several ask for is looked up once, as soon as any of them may")
    mutating func shared() {
        for task in 0..<4 { ask(["mirror\(task)"], Asker(party: "a", task: task, urgency: .spare)) }
        #expect(all() == ["mirror0", "mirror1"])
        let wanted = ask("mirror3", Asker(party: "b", task: 9))
        #expect(all() == ["mirror3"])
        #expect(queue.finish("mirror3") == [4, wanted])
        #expect(all() == [])
        _ = queue.finish("mirror0")
        #expect(all() == ["mirror2"])
    }
}
