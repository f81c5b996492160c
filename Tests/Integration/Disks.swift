import FoundationEssentials
import TestSupport

/// Two ext4 file systems, one for the state and one for the files: the journal of one does not order the writes of the
/// other.
final class Disks {
    private let place: TemporaryDirectory
    private let paths: [String]
    private let images: [String]
    private var mounts: [Mount] = []

    var state: String { paths[0] }
    var files: String { paths[1] }

    init(bytes: Int64 = 256 * mebibyte) async throws {
        let place = try TemporaryDirectory()
        self.place = place
        images = ["state.img", "files.img"].map { place.file($0) }
        paths = try ["state", "files"].map { try place.makeDirectory($0) }
        for image in images { try await Mount.makeExt4(image: image, bytes: bytes) }
        try await mount()
    }

    private func mount() async throws {
        for (image, path) in zip(images, paths) { mounts.append(try await Mount.ext4(image: image, at: path)) }
    }

    /// Cuts the power: from this moment on no write reaches the disks.
    func cut() throws {
        for mount in mounts { try mount.cutPower() }
    }

    /// Unmounts both file systems; no process may have a file open on them.
    func unmount() async throws {
        for mount in mounts { try await mount.unmount() }
        mounts = []
    }

    /// Restores power: remounts both file systems.
    func remount() async throws {
        try await unmount()
        try await mount()
    }

    /// Creates a daemon whose state and files are on these disks, each in its own directory.
    func daemon(_ name: String, configuration: String) throws -> DaemonProcess {
        for path in paths {
            try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: false)
        }
        return try DaemonProcess(
            configuration: configuration, stateDirectory: "\(state)/\(name)", downloadDirectory: "\(files)/\(name)")
    }

    /// Removes the directories of a daemon that has ended. The disks have no room for those of hundreds.
    func removeDirectories(of daemon: DaemonProcess) throws {
        for path in [daemon.stateDirectory, daemon.downloads] { try FileManager.default.removeItem(atPath: path) }
    }
}
