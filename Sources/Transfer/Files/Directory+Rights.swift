import CLinux
import Glibc

/// Who may do what in a directory.
extension Directory {
    package func isOwned(by users: [UInt32]) -> Bool {
        (try? descriptor.status()).map { users.contains($0.st_uid) } ?? false
    }

    /// Whether nobody but `users` may make, remove and rename entries in it, as far as owner and mode tell.
    package func isOpenToNoneBut(_ users: [UInt32]) -> Bool {
        guard let status = try? descriptor.status() else { return false }
        return users.contains(status.st_uid) && status.st_mode & 0o022 == 0
    }

    /// A directory on the way from another one up to a root.
    package struct Step {
        let descriptor: FileDescriptorOwner
        package let inode: Inode
        package let status: stat

        /// Whether the kernel would let the user do this with the directory.
        package func may(_ access: UserIdentity.Access, _ user: UserIdentity) -> Bool {
            user.may(access, descriptor: descriptor.raw, status)
        }
    }

    /// No path has more components.
    private static let deepest = 2048

    /// This directory and those that hold it, by descriptor, up to `root`, which comes last.
    ///
    /// - Throws: `pathNotAllowed` where `root` does not hold it any more.
    package func steps(upTo root: Inode) throws(TransferError) -> [Step] {
        var steps = [Step(descriptor: descriptor, inode: inode, status: try descriptor.status())]
        while let last = steps.last, last.inode != root {
            let raw = linux_openat_name(last.descriptor.raw, "..")
            guard raw >= 0 else { throw .file(errno, doing: "look at what holds \(path)") }
            let parent = FileDescriptorOwner(raw)
            let status = try parent.status()
            let step = Step(descriptor: parent, inode: Inode(status), status: status)
            guard step.inode != last.inode, steps.count < Self.deepest else {
                throw TransferError(.pathNotAllowed, "\(path) was moved away from its root")
            }
            steps.append(step)
        }
        return steps
    }

    /// Makes the directory `name` for `user`: beside this process's own user she alone may read and change it and what
    /// will lie in it. One that is there already becomes so; one of her own stays as it is.
    ///
    /// - Returns: `false` where the file system has no access control lists: then only what its mode says holds.
    /// - Throws: `pathNotAllowed` where something else has the name.
    package func makePrivate(_ name: String, for user: UInt32) throws(TransferError) -> Bool {
        let path = path(of: name)
        if mkdirat(descriptor.raw, name, 0o700) == 0 {
            try synchronize()
        } else if errno != EEXIST {
            throw .file(errno, doing: "make the directory \(path)")
        }
        let raw = linux_openat_beneath(descriptor.raw, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
        guard raw >= 0 else { throw .file(errno, doing: "open the directory \(path)") }
        let made = FileDescriptorOwner(raw)
        let status = try made.status()
        if status.st_uid == user { return true }
        guard status.st_uid == geteuid() else {
            throw TransferError(
                .pathNotAllowed, "\(path) belongs to the user \(status.st_uid), and is not the place of \(user)")
        }
        let list = AccessControlList([
            .init(.owner, 7), .init(.user, 7, id: user), .init(.owningGroup, 0), .init(.mask, 7), .init(.other, 0),
        ])
        for kind in [AccessControlList.Kind.defaults, .access] where try AccessControlList.read(kind, of: raw) != list {
            guard try !list.write(kind, to: raw) else { continue }
            // She is to read at least what everyone may read whom the umask lets.
            guard fchmod(raw, 0o777 & ~ProcessFile.umask()) == 0 else {
                throw .file(errno, doing: "open the directory \(path) to its user")
            }
            return false
        }
        return true
    }

    /// Whether the file system has access control lists.
    package var hasAccessControlLists: Bool { AccessControlList.areKnown(to: descriptor.raw) }

    /// Lets a user through to what lies in this directory, where it is the process's own and she may not search it; to
    /// list it needs another right.
    ///
    /// - Parameter groups: hers. Asked where they matter: the answer may come from another machine.
    /// - Returns: `false` where she cannot be let through: the directory is another user's, or the file system has no
    ///   access control lists.
    package func letThrough(_ uid: UInt32, groups: () -> [UInt32]) throws(TransferError) -> Bool {
        let status = try descriptor.status()
        let found = try AccessControlList.read(.access, of: descriptor.raw)
        let user = UserIdentity(
            uid: uid, groups: UserIdentity.isJudgedByNumber(uid, status, found) ? [] : groups())
        if user.may(.search, status, found) { return true }
        guard status.st_uid == geteuid() else { return false }
        let list = found ?? AccessControlList(mode: status.st_mode)
        return try list.granting(UserIdentity.Access.search.rawValue, to: uid).write(.access, to: descriptor.raw)
    }

    /// Gives a file the rights of a new one here for which 0666 was asked: what the directory's default access control
    /// list grants, or without one what the umask leaves (acl(5), "OBJECT CREATION AND DEFAULT ACLS"). So a file that came
    /// from another directory has them too.
    ///
    /// A file system without modes, such as FAT, may refuse it; elsewhere the file stays its owner's alone.
    func setPermissions(of file: FileDescriptorOwner, umask: mode_t) {
        let defaults = (try? AccessControlList.read(.defaults, of: descriptor.raw)) ?? nil
        if let defaults, (try? defaults.limited(to: 6).write(.access, to: file.raw)) == true { return }
        _ = fchmod(file.raw, 0o666 & (defaults?.mode ?? ~umask))  // see above
    }

    /// Whether `user` may replace what is called `name`: her own, or what this process fetched for her. In a directory of
    /// her own she may replace everything.
    ///
    /// - Returns: `nil` where nothing has the name.
    package func mayReplace(_ name: String, for user: UInt32) -> Bool? {
        guard let found = status(of: name) else { return nil }
        if found.st_uid == user { return true }
        if let own = try? descriptor.status(), own.st_uid == user { return true }
        return found.st_uid == geteuid() && PartFile.isFetched(name, in: self, for: user)
    }

    /// Refuses a name that is taken by a file of another user's.
    package func checkReplacing(_ name: String, for user: UInt32?) throws(TransferError) {
        guard let user, mayReplace(name, for: user) == false else { return }
        throw TransferError(
            .permissionDenied,
            "\(path(of: name)) is not a file of the user \(user), and is not replaced; another policy than overwrite "
                + "gives the download a name of its own")
    }
}
