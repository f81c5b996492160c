import Synchronization
import Transfer

/// Directories whose file system was taken off its place since downloads went there.
///
/// A path may lead somewhere all the same then: to the directory that the file system was mounted on. Nothing is to
/// land there, so no download begins until the path leads elsewhere again. Known for as long as the daemon lives.
final class DetachedPlaces: Sendable {
    private struct Place {
        /// What its path led to.
        let inode: Inode
        let mount: Mount
        var volume: DetachedVolume?
    }

    /// Directories that are remembered.
    private static let limit = 4_096

    private let places = Mutex<[String: Place]>([:])

    /// Downloads go to `directory`.
    func note(_ directory: Directory) {
        let (path, inode) = (directory.path, directory.inode)
        if places.withLock({ $0[path]?.inode }) == inode { return }
        guard let mount = directory.mount else { return }
        places.withLock { places in
            if places.count >= Self.limit, places[path] == nil { places.removeAll() }
            places[path] = Place(inode: inode, mount: mount)
        }
    }

    /// - Throws: `volumeDetached` while `path` leads to what it leads to without the file system that it was on.
    func check(_ path: String) throws(TransferError) {
        // Nearly always it is where it was: more than that is looked at only where it is not.
        guard let place = places.withLock({ $0[path] }), Inode.at(path) != place.inode else { return }
        guard let volume = place.volume ?? DetachedVolume(at: path, on: place.mount), volume.isGone else {
            return places.withLock { $0[path] = nil }
        }
        places.withLock { $0[path]?.volume = volume }
        throw .detached(volume)
    }
}
