import GRDB
import Glibc
import TaskModel

/// Room on the disk that the database lies on, in bytes.
struct DiskRoom: Equatable {
    /// Bytes to leave free when something is added, but no more than an eighth of the disk: with none at all nothing can
    /// be paused, cancelled or removed any more, and no progress written down.
    static let reserve: Int64 = 64 << 20
    /// So large a part of the reserve lies outside of the database, for its log.
    private static let logShare: Int64 = 4

    var free: Int64
    /// All that the disk has.
    var whole: Int64
    /// The bytes that the log takes up: it begins anew within itself.
    var log: Int64 = 0
    /// Pages of the database that nothing stands in.
    var inDatabase: Int64 = 0

    private var reserved: Int64 { min(Self.reserve, whole / 8) }

    /// Whether `bytes` can be added, though nothing within the database should be free.
    func isAmple(for bytes: Int64) -> Bool { free.subtractingClamped(bytes) >= reserved }

    /// - Throws: ``StoreError/nearlyFull(free:reserved:)`` where `bytes` would leave no room for what must be written later.
    func check(for bytes: Int64) throws(StoreError) {
        let all = free.addingClamped(inDatabase)
        guard all.subtractingClamped(bytes) >= reserved, free.addingClamped(log) >= reserved / Self.logShare else {
            throw .nearlyFull(free: all, reserved: reserved)
        }
    }
}

extension TaskStore {
    /// Judges whether something can be added.
    ///
    /// - Parameters:
    ///   - bytes: that are to be written.
    ///   - database: the connection that writes, for whoever is at its work.
    /// - Throws: ``StoreError/nearlyFull(free:reserved:)``.
    func checkRoom(for bytes: Int64 = 0, in database: Database? = nil) throws(StoreError) {
        var information = statvfs()
        guard statvfs(directory, &information) == 0 else { return }
        let unit = Int64(clamping: information.f_frsize)
        var room = DiskRoom(
            free: Int64(clamping: information.f_bavail).multipliedClamped(by: unit),
            whole: Int64(clamping: information.f_blocks).multipliedClamped(by: unit))
        // Most disks have plenty, and then nothing more is asked.
        if room.isAmple(for: bytes) { return }
        var status = stat()
        if stat(directory + "/dld.db-wal", &status) == 0 { room.log = Int64(status.st_size) }
        room.inDatabase =
            if let database { try translated { try database.freeBytes() } } else { try freeBytes() }
        try room.check(for: bytes)
    }

    /// Bytes of the pages of the database that nothing stands in.
    func freeBytes() throws(StoreError) -> Int64 { try read { try $0.freeBytes() } }
}

extension Database {
    fileprivate func freeBytes() throws -> Int64 {
        let pages = try firstRow("PRAGMA freelist_count") { try $0.integer(0) as Int64 } ?? 0
        return pages.multipliedClamped(by: Self.pageSize)
    }
}
