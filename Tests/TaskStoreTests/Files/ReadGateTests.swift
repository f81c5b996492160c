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

    @Test("a store is closed when its present readers are done, and refuses further ones")
    func close() async throws {
        let directory = try TemporaryDirectory()
        let store = try TaskStore(directory: directory.path)
        let (began, mayEnd, closed) = (Flag(), Flag(), Flag())
        async let read = onThread {
            try store.read { database in
                began.set()
                while !mayEnd.isSet { usleep(1_000) }
                #expect(!closed.isSet)
                return try Int.fetchOne(database, sql: "SELECT count(*) FROM task")
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
