import Testing

@testable import ControlServer

@Suite("Clients that wait for the server")
struct ArrivalQueueTests {
    private final class Connection {}

    @Test("whoever comes after many of another user is taken next, and each user's come in their order")
    func turns() {
        var queue = ArrivalQueue<String>()
        let connection = Connection()
        func arrive(_ user: UInt32, _ count: Int) {
            for number in 0..<count {
                queue.append("\(user)-\(number)", user: user, id: ObjectIdentifier(connection))
            }
        }
        arrive(1, 500)
        #expect(queue.dequeue(atMost: 2) == ["1-0", "1-1"])
        arrive(2, 1)
        arrive(3, 2)
        #expect(queue.count == 501)
        #expect(queue.dequeue(atMost: 6) == ["1-2", "2-0", "3-0", "1-3", "3-1", "1-4"])
        #expect(queue.dequeue(atMost: 1_000).count == 495)
        #expect(queue.count == 0 && queue.dequeue(atMost: 1) == [])
    }
}
