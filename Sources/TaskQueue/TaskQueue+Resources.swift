import Glibc
import Synchronization
package import TaskModel
import TaskStore
import Transfer

/// The limits, disks and hosts that decide how fast tasks run.
extension TaskQueue {
    /// The limits of the configuration that apply to each task.
    package var taskLimits:
        (
            activeTasks: Int, activeTasksPerOwner: Int?, connectionsPerTask: Int?, connectionsPerHost: Int
        )
    {
        let settings = settings
        let connections = settings.segments.isAutomatic ? nil : settings.segments.most
        return (settings.activeTasks, settings.activeTasksPerOwner, connections, settings.connectionsPerHost)
    }

    /// Returns the present window of the schedule with the time until which it applies; `nil` if there is none.
    package func scheduleWindow() async -> (window: ScheduleWindow, until: Milliseconds?)? {
        await onSharedThreads { await rateKeeper.window }
    }

    /// Returns the hosts on hold: for an administrator all of them, otherwise those of the caller's queued tasks.
    package func heldHosts(for caller: Caller) async throws(QueueError) -> [HeldHost] {
        let held = await onSharedThreads { await scheduler.heldHosts() }
        guard let owner = caller.scope, !held.isEmpty else { return Array(held.prefix(Self.heldHostsLimit)) }
        let own = try stored { () throws(StoreError) in
            try store.queuedHosts(of: owner, among: held.flatMap { [$0.fingerprint] + $0.behind })
        }
        return Array(
            held.lazy.filter { held in own.contains { held.holds($0, of: owner) } }.prefix(Self.heldHostsLimit))
    }

    private static let heldHostsLimit = 100

    /// The room on the disk of a directory for downloads.
    package struct DiskRoom: Sendable, Equatable {
        package var path: String
        /// The free and total bytes; `nil` if the disk does not tell.
        package var free: Int64?
        package var total: Int64?
    }

    /// Returns the free bytes that downloads leave untouched on a disk.
    package func minimumFree(on disk: DiskRoom) -> Int64 { Directory.reserve(settings.minimumFree, of: disk.total) }

    /// Returns the room of the directories for downloads, as it was within the last second. A disk that does not answer
    /// in time has none.
    package func diskRooms() async -> [DiskRoom] {
        var paths: [String] = []
        for path in [settings.downloadDirectory] + settings.downloadRoots
        where path.hasPrefix("/") && !paths.contains(path) && paths.count < Self.disksLimit {
            paths.append(path)
        }
        let known = paths
        let now = clock.monotonic()
        let last = lastDiskRooms.withLock { $0 }
        if let last, now - last.at < Self.diskRoomsAge, last.rooms.map(\.path) == known { return last.rooms }
        let rooms = await diskGuard.evaluate { known.map(Self.room) } ?? known.map { DiskRoom(path: $0) }
        lastDiskRooms.withLock { $0 = (now, rooms) }
        return rooms
    }

    /// The time in milliseconds for which the room of disks is used again.
    private static let diskRoomsAge: Milliseconds = 1_000

    private static let disksLimit = 64

    /// Returns the room of a directory. One that does not exist yet has that of the directory in which it will be made.
    private static func room(_ path: String) -> DiskRoom {
        var place = path
        while true {
            var information = statvfs()
            if statvfs(place, &information) == 0 {
                // A disk without a size, as a tmpfs without a limit, tells neither.
                guard information.f_blocks > 0 else { return DiskRoom(path: path) }
                let unit = Int64(clamping: information.f_frsize)
                return DiskRoom(
                    path: path, free: Int64(clamping: information.f_bavail).multipliedClamped(by: unit),
                    total: Int64(clamping: information.f_blocks).multipliedClamped(by: unit))
            }
            guard errno == ENOENT, place != "/", let slash = place.lastIndex(of: "/") else {
                return DiskRoom(path: path)
            }
            place = slash == place.startIndex ? "/" : String(place[..<slash])
        }
    }
}
