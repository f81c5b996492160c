import Glibc

/// A file system that a test mounted, detached when the last reference goes. Needs root.
package final class Mount: Sendable {
    package let path: String

    private init(path: String) { self.path = path }

    deinit { umount2(path, Int32(MNT_DETACH)) }

    /// A file system in memory, with room for so many bytes.
    package static func tmpfs(at path: String, bytes: Int64) async throws -> Mount {
        try await mount(["-t", "tmpfs", "-o", "size=\(bytes)", "tmpfs", path])
        return Mount(path: path)
    }

    /// Gives a tmpfs another size.
    package func resize(bytes: Int64) async throws {
        try await Self.mount(["-o", "remount,size=\(bytes)", path])
    }

    /// The ext4 in the file `image`, through a loop device.
    package static func ext4(image: String, at path: String) async throws -> Mount {
        try await mount(["-t", "ext4", "-o", "loop", image, path])
        return Mount(path: path)
    }

    /// Makes an empty ext4 of so many bytes in a file.
    package static func makeExt4(image: String, bytes: Int64) async throws {
        try await check(["truncate", "-s", "\(bytes)", image])
        try await check(["mkfs.ext4", "-q", "-F", image])
    }

    /// Unmounts, and fails where something beneath is still open.
    package func unmount() async throws { try await Self.check(["umount", path]) }

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

    private static func check(_ command: [String]) async throws {
        let outcome = try await run(command, environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
        guard outcome.succeeded else {
            throw Unusable(reason: "\(command.joined(separator: " ")): \(outcome.error)")
        }
    }
}
