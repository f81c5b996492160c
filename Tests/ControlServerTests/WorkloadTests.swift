import NIOCore
import NIOPosix
import Testing

@testable import ControlServer

@Suite("What users may have under way")
struct WorkloadTests {
    /// Small limits: 100 bytes for each user, 200 in total, of which 50 are reserved for users that hold no more than
    /// 10.
    private static var limits: ConnectionLimits {
        var limits = ConnectionLimits()
        limits.memoryPerUser = 100
        limits.memory = 200
        limits.memoryReserve = 50
        limits.littleMemory = 10
        limits.quickMemory = 2
        limits.atOnce = 2
        limits.longLinesPerUser = 2
        limits.longLines = 4
        limits.longLineReserve = 1
        return limits
    }

    private final class Owner {}

    /// A record of the requests that were started, in order.
    private final class Log {
        var tickets: [(name: String, ticket: Workload.Ticket)] = []
        var names: [String] { tickets.map(\.name) }

        func ticket(_ name: String) throws -> Workload.Ticket { try #require(tickets.last { $0.name == name }).ticket }
    }

    private func withWorkload<Value: Sendable>(
        _ body: @escaping @Sendable (Workload, Log, Owner) throws -> Value
    ) async throws -> Value {
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        return try await eventLoop.submit {
            let workload = Workload(
                limits: Self.limits, trimmer: HeapTrimmer(eventLoop: eventLoop, returnMemory: {}))
            return try body(workload, Log(), Owner())
        }.get()
    }

    @Test("a user's requests wait while the user holds as much as one may, and nobody else's do")
    func perUser() async throws {
        try await withWorkload { workload, log, owner in
            func ask(_ name: String, _ bytes: Int, _ user: UInt32) {
                workload.request(.heavy, bytes: bytes, user: user, owner: ObjectIdentifier(owner)) {
                    log.tickets.append((name, $0))
                }
            }
            ask("a", 80, 1)
            ask("b", 30, 1)
            ask("c", 60, 2)
            #expect(log.names == ["a", "c"])
            #expect(workload.memoryUsed == 140)
            var ticket = try log.ticket("a")
            workload.workEnded(&ticket, leaving: 75)
            #expect(log.names == ["a", "c"], "the answer is not taken yet")
            workload.release(ticket)
            #expect(log.names == ["a", "c", "b"])
        }
    }

    @Test("what all may hold has a reserve for little requests of users who hold little")
    func reserve() async throws {
        try await withWorkload { workload, log, owner in
            func ask(_ name: String, _ lane: Workload.Lane, _ bytes: Int, _ user: UInt32) {
                workload.request(lane, bytes: bytes, user: user, owner: ObjectIdentifier(owner)) {
                    log.tickets.append((name, $0))
                }
            }
            ask("a", .heavy, 90, 1)
            ask("b", .heavy, 60, 2)
            ask("c", .heavy, 20, 3)
            ask("d", .quick, 10, 4)
            #expect(log.names == ["a", "b", "d"])
            workload.release(try log.ticket("b"))
            #expect(log.names == ["a", "b", "d", "c"])
        }
    }

    @Test("a user's requests are carried out a few at a time, in each lane, and users take turns")
    func atOnce() async throws {
        try await withWorkload { workload, log, owner in
            func ask(_ name: String, _ lane: Workload.Lane, _ user: UInt32) {
                workload.request(lane, bytes: 1, user: user, owner: ObjectIdentifier(owner)) {
                    log.tickets.append((name, $0))
                }
            }
            for number in 1...4 { ask("a\(number)", .heavy, 1) }
            ask("quick", .quick, 1)
            for number in 1...3 { ask("b\(number)", .heavy, 2) }
            #expect(log.names == ["a1", "a2", "quick", "b1", "b2"])
            workload.release(try log.ticket("a1"))
            workload.release(try log.ticket("b1"))
            #expect(log.names.suffix(2) == ["a3", "b3"])
            #expect(workload.requestNow(.heavy, bytes: 1, user: 1) == nil, "another of the user's waits")
        }
    }

    @Test("what a connection waits for is forgotten with it")
    func forget() async throws {
        try await withWorkload { workload, log, owner in
            let gone = Owner()
            func ask(_ name: String, _ owner: Owner) {
                workload.request(.heavy, bytes: 60, user: 1, owner: ObjectIdentifier(owner)) {
                    log.tickets.append((name, $0))
                }
            }
            ask("a", owner)
            ask("b", gone)
            ask("c", owner)
            workload.forget(user: 1, owner: ObjectIdentifier(gone))
            workload.release(try log.ticket("a"))
            #expect(log.names == ["a", "c"])
            workload.release(try log.ticket("c"))
            #expect(workload.memoryUsed == 0)
        }
    }

    @Test("a request that would need more than a user may hold is carried out alone")
    func tooLarge() async throws {
        try await withWorkload { workload, log, owner in
            workload.request(.heavy, bytes: 1_000, user: 1, owner: ObjectIdentifier(owner)) {
                log.tickets.append(("a", $0))
            }
            #expect(log.names == ["a"])
            #expect(workload.memoryUsed == 100)
        }
    }

    @Test("long lines are received in turn, and one user leaves a place to others")
    func longLines() async throws {
        try await withWorkload { workload, _, owner in
            var begun: [UInt32] = []
            func ask(_ user: UInt32) {
                workload.requestLongLine(user: user, owner: ObjectIdentifier(owner)) { begun.append(user) }
            }
            for user: UInt32 in [1, 1, 1, 2, 2, 3] { ask(user) }
            // The third request of the first user and the second request of the next user wait: the last place is
            // reserved for a new user.
            #expect(begun == [1, 1, 2, 3])
            workload.releaseLongLine(user: 1)
            #expect(begun == [1, 1, 2, 3], "all but the reserve is taken")
            workload.releaseLongLine(user: 3)
            #expect(begun == [1, 1, 2, 3, 1])
        }
    }

    @Test("writes that were unread when the clock began are told from later ones")
    func unread() {
        var unread = UnreadWrites()
        unread.began()
        unread.mark()
        unread.began()
        #expect(!unread.isMarkTaken)
        unread.ended()
        #expect(unread.isMarkTaken && !unread.isEmpty)
        unread.ended()
        #expect(unread.isEmpty)
    }
}
