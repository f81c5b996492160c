import Synchronization
import Transfer

/// Directories whose file system was taken off its place since downloads went there.
///
/// A path may lead somewhere all the same then: to the directory that the file system was mounted on. Nothing is to
/// land there, so no download begins until the path leads elsewhere again. Known for as long as the daemon lives.
final class DetachedPlaces: Sendable {
    private struct Place {
        var mount: Mount
        var volume: DetachedVolume?
    }

    /// Directories that are remembered.
    private static let limit = 4_096

    private let places = Mutex<[String: Place]>([:])

    /// Downloads go to `directory`.
    func note(_ directory: Directory) {
        guard let mount = directory.mount else { return }
        places.withLock { places in
            if places.count >= Self.limit, places[directory.path] == nil { places.removeAll() }
            places[directory.path] = Place(mount: mount)
        }
    }

    /// - Throws: `volumeDetached` while `path` leads to what it leads to without the file system that it was on.
    func check(_ path: String) throws(TransferError) {
        guard let place = places.withLock({ $0[path] }),
            let volume = place.volume ?? DetachedVolume(at: path, on: place.mount)
        else { return }
        guard volume.isGone else { return places.withLock { $0[path] = nil } }
        places.withLock { $0[path]?.volume = volume }
        throw .detached(volume)
    }
}
