import GRDB
import Glibc
import TaskModel

/// The free space on the disk that contains the database, in bytes.
struct DiskRoom: Equatable {
    /// The number of bytes to leave free when something is added, but at most an eighth of the disk. Without free space
    /// tasks cannot be paused, cancelled or removed, and progress cannot be stored.
    static let reserve: Int64 = 64 << 20
    /// The divisor for the part of the reserve that must be outside of the database, for its log.
    private static let logShare: Int64 = 4

    var free: Int64
    /// The total size of the disk.
    var whole: Int64
    /// The size of the log, which SQLite overwrites from its beginning.
    var log: Int64 = 0
    /// The size of the unused pages of the database.
    var inDatabase: Int64 = 0

    var reserved: Int64 { min(Self.reserve, whole / 8) }

    /// Returns whether `bytes` can be added even if the database contains no unused pages.
    func isAmple(for bytes: Int64) -> Bool { free.subtractingClamped(bytes) >= reserved }

    /// Checks whether `bytes` can be added.
    ///
    /// - Throws: ``StoreError/nearlyFull(free:reserved:)`` if `bytes` would leave no room for later necessary writes.
    func check(for bytes: Int64) throws(StoreError) {
        let all = free.addingClamped(inDatabase)
        guard all.subtractingClamped(bytes) >= reserved, free.addingClamped(log) >= reserved / Self.logShare else {
            throw .nearlyFull(free: all, reserved: reserved)
        }
    }
}

extension DiskRoom {
    /// Determines the space on the disk that contains a directory; `nil` if that fails.
    init?(of directory: String) {
        var information = statvfs()
        guard statvfs(directory, &information) == 0 else { return nil }
        let unit = Int64(clamping: information.f_frsize)
        self.init(
            free: Int64(clamping: information.f_bavail).multipliedClamped(by: unit),
            whole: Int64(clamping: information.f_blocks).multipliedClamped(by: unit))
    }
}

extension TaskStore {
    /// The size of the write-ahead log in bytes; `nil` if it cannot be determined.
    package var logSize: Int64? {
        var status = stat()
        return stat(directory + "/dld.db-wal", &status) == 0 ? Int64(status.st_size) : nil
    }

    /// Checks whether something can be added.
    ///
    /// - Parameters:
    ///   - bytes: the number of bytes to be written.
    ///   - database: the writer connection, if called during a write.
    /// - Throws: ``StoreError/nearlyFull(free:reserved:)``.
    func checkRoom(for bytes: Int64 = 0, in database: Database? = nil) throws(StoreError) {
        guard var room = DiskRoom(of: directory) else { return }
        // Most disks have ample space, which makes further queries unnecessary.
        if room.isAmple(for: bytes) { return }
        if let size = logSize { room.log = size }
        room.inDatabase =
            if let database { try translated { try database.freeBytes() } } else { try freeBytes() }
        try room.check(for: bytes)
    }

    /// Checks whether a copy of the database can be written next to it.
    ///
    /// - Throws: ``StoreError/noRoom(_:)`` if the copy would leave no room for later necessary writes.
    func checkRoomForCopy(of bytes: Int64) throws(StoreError) {
        guard let room = DiskRoom(of: directory), !room.isAmple(for: bytes) else { return }
        throw .noRoom(
            "the state directory \(directory) has no room for a copy of the database: the copy takes "
                + "\(bytes / 1_024) KiB, \(room.free / 1_024) KiB are free, and \(room.reserved / 1_024) KiB are "
                + "reserved for tasks; free some space and try again")
    }

    /// Returns the size of the unused pages of the database in bytes.
    func freeBytes() throws(StoreError) -> Int64 { try read { try $0.freeBytes() } }
}

extension Database {
    fileprivate func freeBytes() throws -> Int64 {
        let pages = try firstRow("PRAGMA freelist_count") { try $0.integer(0) as Int64 } ?? 0
        return pages.multipliedClamped(by: Self.pageSize)
    }
}
