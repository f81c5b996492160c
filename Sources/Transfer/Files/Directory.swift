import CLinux
import Glibc

/// An open directory. Its descriptor pins it: files are still written to it after its path was renamed or replaced.
///
/// Everything beneath it is accessed with `openat2`, which follows no symbolic links and does not leave the directory.
public final class Directory: Sendable {
    let descriptor: FileDescriptorOwner
    /// The path that the directory was opened with, for messages and for the paths of finished files.
    public let path: String
    /// The inode of the open directory, whatever its path is now.
    public let inode: Inode
    /// The type of its file system.
    let fileSystem: FileSystemType

    init(descriptor: FileDescriptorOwner, path: String) throws(TransferError) {
        self.descriptor = descriptor
        self.path = path
        inode = Inode(try descriptor.status())
        fileSystem = FileSystemType(of: descriptor.raw)
    }

    /// Opens `root` and, beneath it, `subdirectory`. Missing components of `subdirectory` are created.
    ///
    /// - Parameters:
    ///   - root: an absolute path; symbolic links in it are followed.
    ///   - subdirectory: a path relative to `root`, empty for the root itself; symbolic links in it are refused.
    ///   - makesRoot: whether to create the root too if it is missing.
    public static func open(
        root: String, subdirectory: String = "", makesRoot: Bool = false
    ) throws(TransferError) -> Directory {
        var rootDescriptor = Glibc.open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if rootDescriptor < 0, errno == ENOENT, makesRoot {
            try makePath(root)
            rootDescriptor = Glibc.open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard rootDescriptor >= 0 else { throw .file(errno, doing: "open the directory \(root)") }
        let owner = FileDescriptorOwner(rootDescriptor)
        // The path is split by bytes: a combining mark after a slash forms one `Character` with it.
        let components = subdirectory.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
            .filter { $0 != "." }
        guard !components.isEmpty else { return try Directory(descriptor: owner, path: root) }
        let path = root + (root.hasSuffix("/") ? "" : "/") + components.joined(separator: "/")
        // One step is enough if all components exist.
        let whole = linux_openat_beneath(
            owner.raw, components.joined(separator: "/"), O_RDONLY | O_DIRECTORY, 0)
        if whole >= 0 { return try Directory(descriptor: FileDescriptorOwner(whole), path: path) }
        return try Directory(descriptor: owner, path: root).chain(of: components, marked: false).last
    }

    /// Opens the directory as ``open(root:subdirectory:makesRoot:)`` does, but creates nothing.
    public static func open(existing root: String, subdirectory: String) throws(TransferError) -> Directory {
        let rootDirectory = try open(root: root)
        guard !subdirectory.isEmpty else { return rootDirectory }
        let raw = linux_openat_beneath(rootDirectory.descriptor.raw, subdirectory, O_RDONLY | O_DIRECTORY, 0)
        let path = rootDirectory.path(of: subdirectory)
        guard raw >= 0 else { throw .file(errno, doing: "open the directory \(path)") }
        return try Directory(descriptor: FileDescriptorOwner(raw), path: path)
    }

    private static func makePath(_ path: String) throws(TransferError) {
        var built = ""
        for component in path.utf8.split(separator: UInt8(ascii: "/")) {
            let parent = built.isEmpty ? "/" : built
            built += "/" + String(Substring(component))
            guard mkdir(built, 0o777) == 0 else { continue }
            // As beneath a root, the new entry must survive a power failure as reliably as the file in the directory.
            let descriptor = Glibc.open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            // Permission to create entries in a directory does not imply permission to read it. Without the latter it
            // cannot be opened for the fsync.
            guard descriptor >= 0 else { continue }
            defer { _ = close(descriptor) }  // a directory that was read at most
            try synchronize(descriptor, parent)
        }
    }

    /// Whether the file system is remote or implemented by a program, and can therefore block its callers for ever.
    package var isOnAnotherMachine: Bool { fileSystem.isOfAnotherMachine }

    /// The device number of the directory's file system.
    var device: UInt64 { inode.device }

    func isSame(as other: Directory) -> Bool { inode == other.inode }

    /// Writes the directory's entries to the disk (fsync): names created or removed before the call survive a power
    /// failure.
    ///
    /// Blocks until the disk has them.
    public func synchronize() throws(TransferError) {
        try Self.synchronize(descriptor.raw, path)
    }

    private static func synchronize(_ raw: Int32, _ path: String) throws(TransferError) {
        while fsync(raw) != 0 {
            guard errno == EINTR else { throw .file(errno, doing: "sync the directory \(path)") }
        }
    }

    /// Writes the directory's names to the disk. For files that got their first name there it syncs the whole file system
    /// too (syncfs), where files without a name are used. Blocks until the disk has them.
    package func synchronizeNames() throws(TransferError) {
        try synchronize()
        if fileSystem.reportsChanges { try synchronizeFileSystem() }
    }

    /// Writes all data of the directory's file system to the disk (syncfs).
    func synchronizeFileSystem() throws(TransferError) {
        guard linux_syncfs(descriptor.raw) == 0 else {
            throw .file(errno, doing: "sync the file system of \(path)")
        }
    }

    /// Whether an entry of any kind has this name.
    public func contains(_ name: String) -> Bool {
        faccessat(descriptor.raw, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Opens the entry `name` for reading, whatever its kind, except a symbolic link.
    ///
    /// - Returns: `nil` if it cannot be opened; `errno` states the reason.
    func open(reading name: String) -> (FileDescriptorOwner, stat)? {
        let raw = linux_openat_beneath(descriptor.raw, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        guard raw >= 0 else { return nil }
        let opened = FileDescriptorOwner(raw)
        return (try? opened.status()).map { (opened, $0) }
    }

    /// Returns the status of the entry `name` itself, even if it is a symbolic link; `nil` if there is none.
    func status(of name: String) -> stat? {
        var information = stat()
        return fstatat(descriptor.raw, name, &information, AT_SYMLINK_NOFOLLOW) == 0 ? information : nil
    }

    /// Returns the size of the file `name` in bytes; `nil` if it is not a regular file. Symbolic links are not
    /// followed, since one may lead to a file that its creator may not access.
    public func sizeOfFile(_ name: String) -> Int64? {
        status(of: name).flatMap { $0.st_mode & S_IFMT == S_IFREG ? Int64($0.st_size) : nil }
    }

    /// Whether `name` is a directory and not a symbolic link to one.
    func isDirectory(_ name: String) -> Bool { status(of: name).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false }

    /// Removes the entry `name`; a missing one is not an error. The removal may be undone by a power failure until
    /// ``synchronize()`` has returned.
    public func remove(_ name: String) throws(TransferError) {
        _ = try removeIfPresent(name)
    }

    /// Removes the entry `name` as ``remove(_:)`` does.
    ///
    /// - Returns: whether the entry existed.
    public func removeIfPresent(_ name: String) throws(TransferError) -> Bool {
        if unlinkat(descriptor.raw, name, 0) == 0 { return true }
        guard errno == ENOENT else { throw refusal(errno, doing: "remove \(path(of: name))", of: name) }
        return false
    }

    /// Whether the finished file `name` was published by the download called `owner` and is `size` bytes long.
    ///
    /// - Returns: `nil` if there is no entry of that name.
    package func holdsPublished(_ name: String, by owner: String, size: Int64) -> Bool? {
        guard let isOwn = PartFile.isOwn(name, in: self, of: owner, size: size) else { return nil }
        return isOwn && status(of: name).map { Int64($0.st_size) } == size
    }

    /// Removes a download's part file as ``removeIfPresent(_:)`` does.
    ///
    /// - Throws: also `partInUse` if another process uses the part file.
    public func removePart(_ name: String) throws(TransferError) -> Bool {
        try PartLock.checkFree(name, in: self)
        return try removeIfPresent(name)
    }

    /// Removes the finished file `name` if the download called `owner` published it and it still has `size` bytes.
    ///
    /// - Returns: `false` if the name is now taken by something else, or if the file has another size since. It stays.
    public func removePublished(_ name: String, by owner: String, size: Int64) throws(TransferError) -> Bool {
        switch holdsPublished(name, by: owner, size: size) {
        case nil: return true
        case false?: return false
        case true?:
            try remove(name)
            return true
        }
    }

    /// Returns the current path of the directory, which may have been moved, with its files, since it was opened. For a
    /// removed directory it returns the original path.
    ///
    /// - Throws: `volumeDetached` if its file system was unmounted, and `io` if another one was mounted over it: files
    ///   written here now would not be visible at the expected path.
    func currentPath() throws(TransferError) -> String {
        let found = Inode.at(path)
        if found == inode { return path }
        if let moved = movedPath, Inode.at(moved) == inode { return moved }
        guard let information = try? descriptor.status(), information.st_nlink > 0 else { return path }
        if let mount, let volume = DetachedVolume(at: path, on: mount) { throw .detached(volume) }
        guard let found, found.device != device else { return path }
        throw TransferError(.io, "another file system was mounted over \(path); the download starts again there")
    }

    /// The directory's path according to the kernel.
    private var movedPath: String? {
        var text = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(descriptor.raw)", &text, text.count)
        guard count > 0 else { return nil }
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The mount that the directory is on; `nil` if the kernel does not report it.
    public var mount: Mount? { Mount(of: descriptor, on: device) }

    /// Returns the path of the entry `name` of this directory. It accesses no file.
    public func path(of name: String) -> String { Self.path(of: name, in: path) }

    /// Returns the path of the entry `name` of the directory at a path.
    public static func path(of name: String, in directory: String) -> String {
        directory + (directory.hasSuffix("/") ? "" : "/") + name
    }

    /// Returns the size of the finished file `name` if the download called `owner` published it.
    ///
    /// This finds a file that was published by a process that ended before it recorded the publication.
    public func publishedSize(of name: String, by owner: String) -> Int64? {
        PartFile.isPublished(name, in: self, by: owner)
    }

    /// Returns the bytes that a file occupies on the disk; 0 if there is no regular file of this name, or if it has
    /// further hard links.
    func allocatedSpace(of name: String) -> Int64 {
        guard let information = status(of: name), information.st_mode & S_IFMT == S_IFREG, information.st_nlink == 1
        else { return 0 }
        return Int64(information.st_blocks) * 512
    }
}
