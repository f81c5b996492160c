import TaskModel
import Testing

@testable import TaskStore

@Suite("Room on the disk of the database")
struct StoreRoomTests {
    private static let mebibyte: Int64 = 1 << 20

    private func isTaken(_ room: DiskRoom, _ bytes: Int64 = 0) -> Bool {
        do throws(StoreError) {
            try room.check(for: bytes)
            return true
        } catch {
            guard case .nearlyFull = error else { return false }
            return false
        }
    }

    @Test("F14: 64 MiB stay free, or an eighth of a small disk, and what is to be written besides")
    func reserve() {
        let large = DiskRoom(free: 70 * Self.mebibyte, whole: 10_000 * Self.mebibyte)
        #expect(large.isAmple(for: 6 * Self.mebibyte) && isTaken(large, 6 * Self.mebibyte))
        #expect(!large.isAmple(for: 7 * Self.mebibyte) && !isTaken(large, 7 * Self.mebibyte))
        let small = DiskRoom(free: 4 * Self.mebibyte, whole: 32 * Self.mebibyte)
        #expect(isTaken(small) && !isTaken(small, 1) && !isTaken(small, .max))
    }

    @Test("F14: what was removed makes room within the database, as long as its log has some beside it")
    func withinDatabase() {
        var room = DiskRoom(free: 26 * Self.mebibyte, whole: 256 * Self.mebibyte)
        #expect(!isTaken(room))
        room.inDatabase = 6 * Self.mebibyte
        #expect(isTaken(room) && !isTaken(room, 1))
        room.inDatabase = 200 * Self.mebibyte
        room.free = 7 * Self.mebibyte
        #expect(!isTaken(room))
        room.log = Self.mebibyte
        #expect(isTaken(room))
        room.inDatabase = .max
        #expect(isTaken(room))
    }

    @Test("F14: pages that are free are known to the connection that writes, and to those that read")
    func pages() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let ids = try await store.add(
            [.sample().with(password: String(repeating: "p", count: 1 << 20))], now: 1
        ).map(\.id)
        #expect(throws: StoreError.self) { try store.checkRoom(for: .max) }
        let before = try store.freeBytes()
        _ = try await store.remove(ids, owner: nil, now: 1)
        #expect(try store.freeBytes() - before >= Self.mebibyte)
        await #expect(throws: StoreError.self) {
            try await store.writes.perform { try store.checkRoom(for: .max, in: $0) }
        }
    }
}
