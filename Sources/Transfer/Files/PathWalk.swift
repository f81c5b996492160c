import CLinux
package import Glibc

/// A walk along a path on behalf of a user, component by component and by descriptor. The walk ends at the very file
/// that was checked, even if the path is changed meanwhile.
///
/// The user must have search permission on each directory on the way, including those reached through symbolic links
/// and `..`.
package struct PathWalk {
    /// The reason why a path cannot be resolved.
    package enum Refusal: Error, Equatable {
        /// A missing entry in a directory that the user may search.
        case missing
        /// A missing permission of the user on a directory on the way, or on the file at the end.
        case denied
        /// A system error (errno(3)).
        case system(Int32)
    }

    /// The file or directory at the end of a path.
    package struct Node {
        /// The descriptor, opened with `O_PATH`.
        let descriptor: FileDescriptorOwner
        package let status: stat
        /// The directories on the resolved path, from the root directory down; symbolic links are resolved.
        package let parents: [Inode]

        package func may(_ access: UserIdentity.Access, _ user: UserIdentity) -> Bool {
            user.may(access, descriptor: descriptor.raw, status)
        }

        /// Whether its mode may not be the one that applies, because the file system is remote or implemented by a
        /// program.
        package var isOnAnotherMachine: Bool { FileSystemType(of: descriptor.raw).isOfAnotherMachine }
    }

    private let user: UserIdentity
    private var stack: [(descriptor: FileDescriptorOwner, inode: Inode)] = []
    /// The components still to be resolved, the next one last.
    private var pending: [Substring.UTF8View]
    private var links = 0
    private var steps = 0

    /// The maximum number of symbolic links followed, the same as the kernel's (path_resolution(7)).
    private static let longestChain = 40
    /// The maximum length of a path or of a link's target in bytes (PATH_MAX).
    private static let longestPath = 4096

    private init(_ path: String, _ user: UserIdentity) {
        self.user = user
        pending = Self.names(in: path)
    }

    private static func names(in path: String) -> [Substring.UTF8View] {
        path.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }.reversed()
    }

    /// Resolves a path.
    ///
    /// - Parameter path: an absolute path.
    package static func follow(_ path: String, as user: UserIdentity) throws(Stop) -> Node {
        var walk = PathWalk(path, user)
        do throws(Refusal) {
            guard path.utf8.first == UInt8(ascii: "/") else { throw .system(EINVAL) }
            guard path.utf8.count < longestPath else { throw .system(ENAMETOOLONG) }
            return try walk.run()
        } catch {
            throw Stop(refusal: error, parents: walk.stack.map(\.inode))
        }
    }

    /// The point at which a walk failed, and the reason.
    package struct Stop: Error {
        package let refusal: Refusal
        /// The directories on the way to that point.
        package let parents: [Inode]
    }

    private mutating func run() throws(Refusal) -> Node {
        try enterRoot()
        while let name = pending.popLast() {
            if name.elementsEqual("..".utf8) {
                // In the root directory, `..` is the root directory itself.
                if stack.count > 1 { stack.removeLast() }
                continue
            }
            let (descriptor, status) = try look(at: String(Substring(name)))
            switch status.st_mode & S_IFMT {
            case S_IFLNK: try follow(descriptor)
            case S_IFDIR: try enter(descriptor, status)
            default:
                guard pending.isEmpty else { throw .system(ENOTDIR) }
                return Node(descriptor: descriptor, status: status, parents: stack.map(\.inode))
            }
        }
        // The path ends at a directory.
        guard let last = stack.popLast(), let status = try? last.descriptor.status() else { throw .system(EIO) }
        return Node(descriptor: last.descriptor, status: status, parents: stack.map(\.inode))
    }

    private mutating func enterRoot() throws(Refusal) {
        let raw = linux_openat_name(AT_FDCWD, "/")
        guard raw >= 0 else { throw .system(errno) }
        let root = FileDescriptorOwner(raw)
        guard let status = try? root.status() else { throw .system(EIO) }
        try enter(root, status)
    }

    private func look(at name: String) throws(Refusal) -> (FileDescriptorOwner, stat) {
        guard let parent = stack.last else { throw .system(EIO) }
        let raw = linux_openat_name(parent.descriptor.raw, name)
        guard raw >= 0 else { throw errno == ENOENT ? .missing : .system(errno) }
        let descriptor = FileDescriptorOwner(raw)
        guard let status = try? descriptor.status() else { throw .system(EIO) }
        return (descriptor, status)
    }

    /// The maximum number of directories on a path, and the maximum depth; each directory stays open until the walk
    /// ends.
    private static let (mostSteps, mostLevels) = (4_096, 256)

    private mutating func enter(_ descriptor: FileDescriptorOwner, _ status: stat) throws(Refusal) {
        steps += 1
        guard steps <= Self.mostSteps, stack.count < Self.mostLevels else { throw .system(ELOOP) }
        stack.append((descriptor, Inode(status)))
        guard user.may(.search, descriptor: descriptor.raw, status) else { throw .denied }
    }

    private mutating func follow(_ link: FileDescriptorOwner) throws(Refusal) {
        links += 1
        guard links <= Self.longestChain else { throw .system(ELOOP) }
        var text = [CChar](repeating: 0, count: Self.longestPath)
        let count = readlinkat(link.raw, "", &text, text.count)
        guard count > 0, count < text.count else { throw .system(count < 0 ? errno : ENAMETOOLONG) }
        let target = String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if target.utf8.first == UInt8(ascii: "/") { stack.removeSubrange(1...) }
        pending += Self.names(in: target)
    }
}
