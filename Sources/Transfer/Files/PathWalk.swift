import CLinux
import Glibc

/// Follows a path on behalf of a user, name by name and by descriptor: what was judged is what is reached, whatever
/// happens to the path meanwhile.
///
/// Each directory on the way, links and `..` included, must be one that the user may search.
package struct PathWalk {
    /// Why a path leads nowhere.
    package enum Refusal: Error, Equatable {
        /// There is no such entry in a directory that the user may search.
        case missing
        /// The user has no right to a directory on the way, or to what is at its end.
        case denied
        /// The system's own reason (errno(3)).
        case system(Int32)
    }

    /// What stands at the end of a path.
    package struct Node {
        /// Opened with `O_PATH`.
        let descriptor: FileDescriptorOwner
        package let status: stat
        /// The directories that lead to it, from the root of the file system on, without links.
        package let parents: [Inode]

        package func may(_ access: UserIdentity.Access, _ user: UserIdentity) -> Bool {
            user.may(access, descriptor: descriptor.raw, status)
        }

        /// Whether its modes need not be what counts: the file system is another machine's, or a program's.
        package var isOnAnotherMachine: Bool { Directory.isOfAnotherMachine(descriptor.raw) }
    }

    private let user: UserIdentity
    private var stack: [(descriptor: FileDescriptorOwner, inode: Inode)] = []
    /// Names yet to be followed, the next one last.
    private var pending: [Substring.UTF8View]
    private var links = 0
    private var steps = 0

    /// As many as the kernel follows (path_resolution(7)).
    private static let longestChain = 40
    /// Bytes of a path or of what a link says (PATH_MAX).
    private static let longestPath = 4096

    private init(_ path: String, _ user: UserIdentity) {
        self.user = user
        pending = Self.names(in: path)
    }

    private static func names(in path: String) -> [Substring.UTF8View] {
        path.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }.reversed()
    }

    /// - Parameter path: absolute.
    package static func follow(_ path: String, as user: UserIdentity) throws(Stop) -> Node {
        var walk = PathWalk(path, user)
        do throws(Refusal) {
            guard path.utf8.first == UInt8(ascii: "/"), path.utf8.count < longestPath else {
                throw .system(ENAMETOOLONG)
            }
            return try walk.run()
        } catch {
            throw Stop(refusal: error, parents: walk.stack.map(\.inode))
        }
    }

    /// Where a walk ended early, and why.
    package struct Stop: Error {
        package let refusal: Refusal
        /// The directories that led there.
        package let parents: [Inode]
    }

    private mutating func run() throws(Refusal) -> Node {
        try enterRoot()
        while let name = pending.popLast() {
            if name.elementsEqual("..".utf8) {
                // At the root it leads to the root.
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
        // The path leads to a directory.
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

    /// Directories that one path may lead through, and how deep: each of them is open until the walk ends.
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
