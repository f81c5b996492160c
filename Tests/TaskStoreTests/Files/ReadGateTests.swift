import GRDB
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import TaskStore

@Suite("Closing a store while it is read")
struct ReadGateTests {
    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }
        func set() { value.store(true, ordering: .sequentiallyConsistent) }
    }

    /// A statement that does not end by itself.
    private static let endless =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

    @Test("A38: a read that SQLite is busy with ends when the store is closed, and when its caller is cancelled")
    func interruption() async throws {
        let directory = try TemporaryDirectory()
        let store = try TaskStore(directory: directory.path)
        let began = Flag()
        let read = Task {
            try store.read(within: .asked) { database in
                began.set()
                return try Int64.fetchOne(database, sql: Self.endless)
            }
        }
        try await eventually(that: "it reads") { began.isSet }
        read.cancel()
        await #expect(throws: StoreError.closed) { try await read.value }
        let next = Flag()
        async let other: Void = onThread {
            #expect(throws: StoreError.closed) {
                _ = try store.read { database in
                    next.set()
                    return try Int64.fetchOne(database, sql: Self.endless)
                }
            }
        }
        try await eventually(that: "it reads") { next.isSet }
        try store.close()
        try await other
    }

    @Test("A38: a read is ended when it has taken as many instructions, or as much time, as it may")
    func budget() throws {
        let directory = try TemporaryDirectory()
        let store = try TaskStore(directory: directory.path)
        for budget in [ReadBudget(instructions: 100_000, time: 60_000), ReadBudget(instructions: .max, time: 20)] {
            #expect(throws: StoreError.tooCostly) {
                _ = try store.read(within: budget) { try Int64.fetchOne($0, sql: Self.endless) }
            }
        }
        // The connection is as before.
        #expect(try store.read(within: .chosen) { try Int64.fetchOne($0, sql: "SELECT 1") } == 1)
        try store.close()
    }

    @Test("a store is closed when its present readers are done, and refuses further ones")
    func close() async throws {
        let directory = try TemporaryDirectory()
        let store = try TaskStore(directory: directory.path)
        let (began, mayEnd, closed) = (Flag(), Flag(), Flag())
        async let read = onThread {
            try store.read { database in
                let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM task")
                began.set()
                while !mayEnd.isSet { usleep(1_000) }
                #expect(!closed.isSet)
                return count
            }
        }
        try await eventually(that: "it reads") { began.isSet }
        async let close: Void = onThread {
            try store.close()
            closed.set()
        }
        try await eventually(that: "further readers are refused") {
            do {
                _ = try store.read { try Int.fetchOne($0, sql: "SELECT 1") }
                return false
            } catch {
                return (error as? StoreError) == .closed
            }
        }
        mayEnd.set()
        #expect(try await read == 0)
        try await close
    }
}
