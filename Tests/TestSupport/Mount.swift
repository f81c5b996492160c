import Glibc

/// A file system that a test mounted, detached when the last reference goes. Needs root.
package final class Mount: Sendable {
    package let path: String
    /// The file that holds the file system, where a loop device does the rest.
    private let image: String?

    private init(path: String, image: String? = nil) {
        self.path = path
        self.image = image
    }

    deinit { umount2(path, Int32(MNT_DETACH)) }

    /// A file system in memory, with room for so many bytes.
    ///
    /// - Parameter inodes: how many files and directories it takes, its root included.
    package static func tmpfs(at path: String, bytes: Int64, inodes: Int? = nil) async throws -> Mount {
        let options = "size=\(bytes)" + (inodes.map { ",nr_inodes=\($0)" } ?? "")
        try await mount(["-t", "tmpfs", "-o", options, "tmpfs", path])
        return Mount(path: path)
    }

    /// Gives a tmpfs another size.
    package func resize(bytes: Int64) async throws {
        try await Self.mount(["-o", "remount,size=\(bytes)", path])
    }

    /// Gives a tmpfs room for so many files.
    package func resize(inodes: Int) async throws {
        try await Self.mount(["-o", "remount,nr_inodes=\(inodes)", path])
    }

    /// Turns an ext4 read-only under whoever writes to it, as the kernel does at an error of the file system's own.
    package func turnReadOnly() async throws { try await Self.mount(["-o", "remount,abort", path]) }

    /// Takes it off its path at once (`umount -l`); whoever has something open beneath goes on with that.
    package func detach() throws {
        guard umount2(path, Int32(MNT_DETACH)) == 0 else { throw SystemError("detaching \(path)") }
    }

    /// The ext4 in the file `image`, through a loop device.
    package static func ext4(image: String, at path: String) async throws -> Mount {
        try await mount(["-t", "ext4", "-o", "loop", image, path])
        return Mount(path: path, image: image)
    }

    /// Makes an empty ext4 of so many bytes in a file.
    package static func makeExt4(image: String, bytes: Int64) async throws {
        try await check(["truncate", "-s", "\(bytes)", image])
        try await check(["mkfs.ext4", "-q", "-F", image])
    }

    /// Unmounts, fails where something beneath is still open, and returns once the file system is gone.
    ///
    /// A mount namespace that another test made meanwhile holds a copy of the mount. While it lives, mounting the
    /// image again would only bring back the same file system, shut down as it is.
    package func unmount() async throws {
        try await Self.check(["umount", path])
        guard let image else { return }
        try await eventually(that: "\(image) is without a loop device") {
            try await Self.check(["losetup", "--associated", image]).output.isEmpty
        }
    }

    /// Ends the file system as a power cut does: from this moment nothing reaches the device, and what had not
    /// reached it is lost.
    package func cutPower() throws {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw SystemError("opening \(path)") }
        defer { close(directory) }
        // EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32); flag 2 (NOLOGFLUSH) keeps even the journal's tail back.
        let request: UInt = 2 << 30 | 4 << 16 | UInt(UInt8(ascii: "X")) << 8 | 125
        var flag: UInt32 = 2
        guard ioctl(directory, request, &flag) == 0 else { throw SystemError("EXT4_IOC_SHUTDOWN") }
    }

    private static func mount(_ arguments: [String]) async throws { try await check(["mount"] + arguments) }

    @discardableResult
    private static func check(_ command: [String]) async throws -> Outcome {
        let outcome = try await run(command, environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
        guard outcome.succeeded else {
            throw Unusable(reason: "\(command.joined(separator: " ")): \(outcome.error)")
        }
        return outcome
    }
}
