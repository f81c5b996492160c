import Synchronization
import Transfer

/// A registry of target directories whose file system has been unmounted since a download used them.
///
/// After an unmount the path may still resolve, namely to the directory that was the mount point. Nothing must be
/// written there, so no download starts until the path leads elsewhere again. The registry lasts for the lifetime of
/// the daemon process.
final class DetachedPlaces: Sendable {
    private struct Place {
        /// The inode to which the path led.
        let inode: Inode
        let mount: Mount
        var volume: DetachedVolume?
    }

    /// The maximum number of remembered directories.
    private static let limit = 4_096

    private let places = Mutex<[String: Place]>([:])

    /// Records that downloads go to `directory`.
    func record(_ directory: Directory) {
        let (path, inode) = (directory.path, directory.inode)
        if places.withLock({ $0[path]?.inode }) == inode { return }
        guard let mount = directory.mount else { return }
        places.withLock { places in
            if places.count >= Self.limit, places[path] == nil { places.removeAll() }
            places[path] = Place(inode: inode, mount: mount)
        }
    }

    /// Checks that the file system of a recorded directory is still mounted.
    ///
    /// - Throws: `volumeDetached` while `path` still leads to what it shows without the file system that was mounted.
    func check(_ path: String) throws(TransferError) {
        // The inode is almost always unchanged. Only a change requires a closer look.
        guard let place = places.withLock({ $0[path] }), Inode.at(path) != place.inode else { return }
        guard let volume = place.volume ?? DetachedVolume(at: path, on: place.mount), volume.isGone else {
            return places.withLock { $0[path] = nil }
        }
        places.withLock { $0[path]?.volume = volume }
        throw .detached(volume)
    }
}
