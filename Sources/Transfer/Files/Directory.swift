import CLinux
import Glibc

/// A directory, opened once and pinned: what happens to its path afterwards moves none of our files elsewhere.
///
/// Everything beneath is reached through `openat2`, which follows no link and takes no step outside.
public final class Directory: Sendable {
    let descriptor: FileDescriptorOwner
    /// As it was opened: for messages and for the paths of finished files.
    public let path: String
    /// What was opened, whatever it is called by now.
    public let inode: Inode

    init(descriptor: FileDescriptorOwner, path: String) throws(TransferError) {
        self.descriptor = descriptor
        self.path = path
        inode = Inode(try descriptor.status())
    }

    /// Opens `root`, and beneath it `subdirectory`, making what is missing of the latter.
    ///
    /// - Parameters:
    ///   - root: an absolute path; links in it are followed.
    ///   - subdirectory: relative to it, empty for the root itself; links in it are refused.
    ///   - makesRoot: make the root itself too, where it is missing.
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
        // By bytes: a mark that combines with a slash makes one `Character` of both.
        let components = subdirectory.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
            .filter { $0 != "." }
        guard !components.isEmpty else { return try Directory(descriptor: owner, path: root) }
        let path = root + (root.hasSuffix("/") ? "" : "/") + components.joined(separator: "/")
        // In one step where all is there already.
        let whole = linux_openat_beneath(
            owner.raw, components.joined(separator: "/"), O_RDONLY | O_DIRECTORY, 0)
        if whole >= 0 { return try Directory(descriptor: FileDescriptorOwner(whole), path: path) }
        return try Directory(descriptor: owner, path: root).chain(of: components, marked: false).last
    }

    /// As ``open(root:subdirectory:makesRoot:)``, but makes nothing.
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
            // As beneath a root: the new entry must outlive a power cut as surely as the file that will lie in it.
            let descriptor = Glibc.open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            // Whoever may make entries there need not be allowed to read it: then it cannot be opened for this.
            guard descriptor >= 0 else { continue }
            defer { _ = close(descriptor) }  // a directory that was read at most
            try synchronize(descriptor, parent)
        }
    }

    /// Whether its file system is another machine's, or a program's, and may keep whoever uses it waiting for ever.
    package var isOnAnotherMachine: Bool { Self.isOfAnotherMachine(descriptor.raw) }

    /// As ``isOnAnotherMachine``, of what a descriptor leads to.
    static func isOfAnotherMachine(_ raw: Int32) -> Bool {
        // NFS, SMB and CIFS, FUSE, Ceph, 9P, AFS, Lustre: statfs(2).
        [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x00C3_6400, 0x0102_1997, 0x5346_414F, 0x0BD0_0BD0]
            .contains(linux_file_system_type(raw))
    }

    /// The file system that it is on.
    var device: UInt64 { inode.device }

    func isSame(as other: Directory) -> Bool { inode == other.inode }

    /// Brings the directory's entries to the disk: a name that was given or taken away before survives a power cut.
    ///
    /// Blocks until the disk has them.
    public func synchronize() throws(TransferError) {
        try Self.synchronize(descriptor.raw, path)
    }

    private static func synchronize(_ raw: Int32, _ path: String) throws(TransferError) {
        while fsync(raw) != 0 {
            guard errno == EINTR else { throw .file(errno, doing: "bring the directory \(path) to the disk") }
        }
    }

    /// Brings everything on the directory's file system to the disk.
    func synchronizeFileSystem() throws(TransferError) {
        guard linux_syncfs(descriptor.raw) == 0 else {
            throw .file(errno, doing: "bring the file system of \(path) to the disk")
        }
    }

    /// Whether something, whatever it is, has this name.
    public func contains(_ name: String) -> Bool {
        faccessat(descriptor.raw, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Opens the entry `name` to be read, whatever it is, unless it is a link.
    ///
    /// - Returns: `nil` where it cannot be opened; `errno` says why.
    func open(reading name: String) -> (FileDescriptorOwner, stat)? {
        let raw = linux_openat_beneath(descriptor.raw, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
        guard raw >= 0 else { return nil }
        let opened = FileDescriptorOwner(raw)
        return (try? opened.status()).map { (opened, $0) }
    }

    /// What the system says of the entry `name` itself, should it be a link; `nil` where there is none.
    func status(of name: String) -> stat? {
        var information = stat()
        return fstatat(descriptor.raw, name, &information, AT_SYMLINK_NOFOLLOW) == 0 ? information : nil
    }

    /// Bytes of the file `name`; `nil` where that is no file. A link may lead where its maker must not look.
    public func sizeOfFile(_ name: String) -> Int64? {
        status(of: name).flatMap { $0.st_mode & S_IFMT == S_IFREG ? Int64($0.st_size) : nil }
    }

    /// Whether `name` is a directory, and no link to one.
    func isDirectory(_ name: String) -> Bool { status(of: name).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false }

    /// Removes the entry `name`; one that is not there is no error. It may come back with a power cut until
    /// ``synchronize()`` has returned.
    public func remove(_ name: String) throws(TransferError) {
        _ = try removeIfPresent(name)
    }

    /// As ``remove(_:)``.
    ///
    /// - Returns: whether it was there.
    public func removeIfPresent(_ name: String) throws(TransferError) -> Bool {
        if unlinkat(descriptor.raw, name, 0) == 0 { return true }
        guard errno == ENOENT else { throw refusal(errno, doing: "remove \(path(of: name))", of: name) }
        return false
    }

    /// Whether the finished file `name` is the one that the download called `owner` brought, `size` bytes long.
    ///
    /// - Returns: `nil` where nothing has the name.
    package func holdsPublished(_ name: String, by owner: String, size: Int64) -> Bool? {
        guard let isOwn = PartFile.isOwn(name, in: self, of: owner, size: size) else { return nil }
        return isOwn && status(of: name).map { Int64($0.st_size) } == size
    }

    /// As ``removeIfPresent(_:)`` for a download's part.
    ///
    /// - Throws: also `partInUse`, where another process is at work on it.
    public func removePart(_ name: String) throws(TransferError) -> Bool {
        try PartLock.checkFree(name, in: self)
        return try removeIfPresent(name)
    }

    /// Removes the finished file `name`, if it is the one that the download called `owner` brought, `size` bytes long.
    ///
    /// - Returns: `false` where something else has that name by now: that stays.
    public func removePublished(_ name: String, by owner: String, size: Int64) throws(TransferError) -> Bool {
        switch PartFile.isOwn(name, in: self, of: owner, size: size) {
        case nil: return true
        case false?: return false
        case true?:
            try remove(name)
            return true
        }
    }

    /// Where the directory is now: it may have been moved since it was opened, and its files with it. Where it was
    /// removed, the path that it had.
    ///
    /// - Throws: `volumeDetached` where its file system was taken off its place, and `io` where another was mounted over
    ///   it: what is written here now, nobody sees under the path that it is to have.
    func currentPath() throws(TransferError) -> String {
        let found = Inode.at(path)
        if found == inode { return path }
        if let moved = movedPath, Inode.at(moved) == inode { return moved }
        guard let information = try? descriptor.status(), information.st_nlink > 0 else { return path }
        if let mount, let volume = DetachedVolume(at: path, on: mount) { throw .detached(volume) }
        guard let found, found.device != device else { return path }
        throw TransferError(.io, "another file system was mounted over \(path); the download begins anew on that")
    }

    /// Where the kernel says that it is.
    private var movedPath: String? {
        var text = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(descriptor.raw)", &text, text.count)
        guard count > 0 else { return nil }
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Where its file system is mounted; `nil` where the kernel does not say.
    public var mount: Mount? { Mount(of: descriptor, on: device) }

    /// Where `name` is in this directory, as a path; makes and looks up nothing.
    public func path(of name: String) -> String { Self.path(of: name, in: path) }

    /// Where `name` is in the directory at a path.
    public static func path(of name: String, in directory: String) -> String {
        directory + (directory.hasSuffix("/") ? "" : "/") + name
    }

    /// The size of the finished file `name` where the download called `owner` gave it that name.
    ///
    /// So a file that was published in a life that ended before it could note that down is known again.
    public func publishedSize(of name: String, by owner: String) -> Int64? {
        PartFile.isPublished(name, in: self, by: owner)
    }

    /// Bytes on the disk that a file takes up; 0 where there is none of this name.
    func allocatedSpace(of name: String) -> Int64 {
        guard let information = status(of: name), information.st_mode & S_IFMT == S_IFREG, information.st_nlink == 1
        else { return 0 }
        return Int64(information.st_blocks) * 512
    }
}
