import FoundationEssentials
import TestSupport

/// Two ext4 file systems, one for the state and one for the files: what the journal of the one writes down says
/// nothing of the other.
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

    /// From this moment on nothing reaches the disks.
    func cut() throws {
        for mount in mounts { try mount.cutPower() }
    }

    /// Takes them off their paths; nobody may have anything open beneath.
    func unmount() async throws {
        for mount in mounts { try await mount.unmount() }
        mounts = []
    }

    /// Power is back.
    func remount() async throws {
        try await unmount()
        try await mount()
    }

    /// A daemon whose state and files lie here, each in a directory of its own.
    func daemon(_ name: String, configuration: String) throws -> DaemonProcess {
        for path in paths {
            try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: false)
        }
        return try DaemonProcess(
            configuration: configuration, stateDirectory: "\(state)/\(name)", downloadDirectory: "\(files)/\(name)")
    }
}
