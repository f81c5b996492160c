import Synchronization
import Transfer

/// Directories whose file system was taken off its place while downloads wrote to them.
///
/// A path may lead somewhere all the same then: to the directory that the file system was mounted on. Nothing is to
/// land there, so no download begins until the path leads elsewhere again. Known for as long as the daemon lives.
final class DetachedPlaces: Sendable {
    private let volumes = Mutex<[String: DetachedVolume]>([:])

    /// What a download failed with, whatever that is.
    func note(_ error: TransferError?) {
        guard let volume = error?.underlying as? DetachedVolume else { return }
        volumes.withLock { $0[volume.path] = volume }
    }

    /// - Throws: `volumeDetached` while `path` leads to what it led to without its file system.
    func check(_ path: String) throws(TransferError) {
        guard let volume = volumes.withLock({ $0[path] }) else { return }
        if Directory.entry(at: path) == volume.beneath { throw .detached(volume) }
        volumes.withLock { $0[path] = nil }
    }
}
