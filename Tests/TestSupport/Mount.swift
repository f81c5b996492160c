import Glibc

/// A file system mounted by a test, and detached when the last reference is released. Requires root.
package final class Mount: Sendable {
    package let path: String
    /// The image file of a file system mounted through a loop device.
    private let image: String?

    private init(path: String, image: String? = nil) {
        self.path = path
        self.image = image
    }

    deinit { umount2(path, Int32(MNT_DETACH)) }

    /// Mounts a file system in memory with a capacity of `bytes`.
    ///
    /// - Parameter inodes: the maximum number of files and directories, including the root.
    package static func tmpfs(at path: String, bytes: Int64, inodes: Int? = nil) async throws -> Mount {
        let options = "size=\(bytes)" + (inodes.map { ",nr_inodes=\($0)" } ?? "")
        try await mount(["-t", "tmpfs", "-o", options, "tmpfs", path])
        return Mount(path: path)
    }

    /// Changes the size of a tmpfs.
    package func resize(bytes: Int64) async throws {
        try await Self.mount(["-o", "remount,size=\(bytes)", path])
    }

    /// Changes the maximum number of files of a tmpfs.
    package func resize(inodes: Int) async throws {
        try await Self.mount(["-o", "remount,nr_inodes=\(inodes)", path])
    }

    /// Makes an ext4 read-only while it is in use, as the kernel does after an error in the file system.
    package func turnReadOnly() async throws { try await Self.mount(["-o", "remount,abort", path]) }

    /// Detaches the mount from its path at once (`umount -l`). Processes can continue to use files that they have open.
    package func detach() throws {
        guard umount2(path, Int32(MNT_DETACH)) == 0 else { throw SystemError("detaching \(path)") }
    }

    /// Mounts the ext4 file system in the file `image` through a loop device.
    package static func ext4(image: String, at path: String) async throws -> Mount {
        try await mount(["-t", "ext4", "-o", "loop", image, path])
        return Mount(path: path, image: image)
    }

    /// Creates an empty ext4 file system of `bytes` bytes in a file.
    package static func makeExt4(image: String, bytes: Int64, isJournaled: Bool = true) async throws {
        try await check(["truncate", "-s", "\(bytes)", image])
        try await check(["mkfs.ext4", "-q", "-F"] + (isJournaled ? [] : ["-O", "^has_journal"]) + [image])
    }

    /// Checks and repairs the unmounted ext4 file system in a file, as the start of a machine does.
    package static func repairExt4(image: String) async throws {
        let outcome = try await run(
            ["e2fsck", "-f", "-y", image], environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
        // 1: errors were corrected.
        guard [.exited(0), .exited(1)].contains(outcome.status) else {
            throw Unusable(reason: "e2fsck: \(outcome.output)")
        }
    }

    /// Unmounts the file system and waits until it is gone. Fails if a file in it is still open.
    ///
    /// A mount namespace that another test created meanwhile holds a copy of the mount. While that exists, mounting the
    /// image again would only return the same file system in its shut-down state.
    package func unmount() async throws {
        try await Self.check(["umount", path])
        guard let image else { return }
        try await eventually(that: "\(image) is without a loop device") {
            try await Self.check(["losetup", "--associated", image]).output.isEmpty
        }
    }

    /// Simulates a power cut: from now on nothing is written to the device, and unwritten data is lost.
    package func cutPower() throws {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw SystemError("opening \(path)") }
        defer { close(directory) }
        // EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32). Flag 2 (NOLOGFLUSH) does not flush the journal.
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
