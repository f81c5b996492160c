import Glibc

/// Loading and saving cookies in Netscape's file format, which curl, wget and browser exporters write.
extension CookieStorage {
    /// The maximum size of a cookie file, in bytes. It is far larger than a full storage needs.
    static let maximumFileSize = 16 << 20
    private static let heading = "# Netscape HTTP Cookie File\n# Written by a program: changes may be lost.\n\n"

    /// Adds the cookies of a file to the storage. Blocks.
    ///
    /// The file is trusted: the storage does not check whether a server could have set its cookies.
    ///
    /// A byte order mark at the beginning is ignored.
    ///
    /// - Returns: The number of lines that are neither cookies nor comments. These lines are skipped.
    /// - Throws: ``TransferError/Code/io`` or another file error if the file cannot be read,
    ///   ``TransferError/Code/tooLarge`` if it exceeds 16 MiB.
    @discardableResult
    public func load(fromFileAt path: String) throws(TransferError) -> Int {
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard raw >= 0 else { throw .file(errno, doing: "open the cookie file \(path)") }
        let file = FileDescriptorOwner(raw)
        let information = try file.status()
        guard information.st_mode & S_IFMT == S_IFREG else { throw .file(EINVAL, doing: "read \(path) as a file") }
        guard information.st_size <= Self.maximumFileSize else {
            throw TransferError(.tooLarge, "the cookie file \(path) is larger than \(Self.maximumFileSize) bytes")
        }
        var bytes = [UInt8](repeating: 0, count: Int(information.st_size))
        let count = try bytes.withUnsafeMutableBufferPointer { space throws(TransferError) in
            try file.read(into: UnsafeMutableRawBufferPointer(space), at: 0)
        }
        var unread = 0
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let text = bytes[..<count].starts(with: mark) ? bytes[mark.count..<count] : bytes[..<count]
        for line in text.split(separator: UInt8(ascii: "\n")) {
            guard line.contains(where: { $0 > 0x20 }) else { continue }
            if let text = String(validating: line, as: UTF8.self), let cookie = Cookie(netscape: text) {
                set(cookie)
            } else if line.first != UInt8(ascii: "#") {
                unread += 1
            }
        }
        return unread
    }

    /// Writes all unexpired cookies, including session cookies, to the file at `path`, replacing it. Blocks.
    ///
    /// The file is readable and writable by its owner only (0600). It is written under a temporary name, synced (fsync)
    /// and then renamed, so it appears atomically. A symbolic link at `path` is replaced, not followed.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - now: The current time in seconds since 1970. By default, the system clock's time.
    /// - Throws: ``TransferError/Code/io`` or another file error if the file cannot be written.
    public func save(toFileAt path: String, now: Int64? = nil) throws(TransferError) {
        let now = now ?? Int64(time(nil))
        let lines = cookies.filter { !$0.isExpired(now: now) }.map { $0.netscapeLine + "\n" }
        let bytes = Array((Self.heading + lines.joined()).utf8)

        let temporary = "\(path).\(String(UInt64.random(in: .min ... .max), radix: 36))"
        let raw = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard raw >= 0 else { throw .file(errno, doing: "create a file beside \(path)") }
        let file = FileDescriptorOwner(raw)
        do throws(TransferError) {
            try bytes.withUnsafeBufferPointer { bytes throws(TransferError) in
                try file.write(UnsafeRawBufferPointer(bytes), at: 0)
            }
            try file.synchronize()
            guard rename(temporary, path) == 0 else { throw .file(errno, doing: "replace \(path)") }
        } catch {
            _ = unlink(temporary)  // the original failure is the one to report
            throw error
        }
        try Self.synchronizeDirectory(of: path)
    }

    /// Syncs (fsync) the directory of `path`, so that the rename is durable.
    private static func synchronizeDirectory(of path: String) throws(TransferError) {
        let bytes = Array(path.utf8)
        let slash = bytes.lastIndex(of: UInt8(ascii: "/"))
        let parent = slash.map { String(decoding: bytes[...$0], as: UTF8.self) } ?? "."
        let raw = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw .file(errno, doing: "open the directory \(parent)") }
        let directory = FileDescriptorOwner(raw)
        while fsync(directory.raw) != 0 {
            guard errno == EINTR else { throw .file(errno, doing: "sync the directory \(parent)") }
        }
    }
}
