import CLinux
package import Glibc

/// Ownership and access rights of a directory.
extension Directory {
    package func isOwned(by users: [UInt32]) -> Bool {
        (try? descriptor.status()).map { users.contains($0.st_uid) } ?? false
    }

    /// Whether only `users` may create, remove and rename entries in the directory, according to its owner and mode.
    package func isWritableOnly(_ users: [UInt32]) -> Bool {
        guard let status = try? descriptor.status() else { return false }
        return users.contains(status.st_uid) && status.st_mode & 0o022 == 0
    }

    /// A directory on the path from another directory up to a root.
    package struct Step {
        let descriptor: FileDescriptorOwner
        package let inode: Inode
        package let status: stat

        /// Whether the kernel would grant the user this access to the directory.
        package func may(_ access: UserIdentity.Access, _ user: UserIdentity) -> Bool {
            user.may(access, descriptor: descriptor.raw, status)
        }
    }

    /// An upper bound of the number of components of a path.
    private static let deepest = 2048

    /// Returns this directory and its ancestors, walked by descriptor up to `root`, which is the last element.
    ///
    /// - Throws: `pathNotAllowed` if this directory is no longer beneath `root`.
    package func steps(upTo root: Inode) throws(TransferError) -> [Step] {
        var steps = [Step(descriptor: descriptor, inode: inode, status: try descriptor.status())]
        while let last = steps.last, last.inode != root {
            let raw = linux_openat_name(last.descriptor.raw, "..")
            guard raw >= 0 else { throw .file(errno, doing: "examine the parent directory of \(path)") }
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

    /// Creates the directory `name` for `user`. Besides this process's own user, only `user` may read and change it and
    /// its future content. An existing directory is given the same rights; one that `user` owns stays unchanged.
    ///
    /// - Returns: `false` if the file system does not support access control lists. Only the mode applies then.
    /// - Throws: `pathNotAllowed` if the name is taken by something else.
    package func makePrivate(_ name: String, for user: UInt32) throws(TransferError) -> Bool {
        let path = path(of: name)
        if mkdirat(descriptor.raw, name, 0o700) == 0 {
            try synchronize()
        } else if errno != EEXIST {
            throw .file(errno, doing: "create the directory \(path)")
        }
        let raw = linux_openat_beneath(descriptor.raw, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
        guard raw >= 0 else { throw .file(errno, doing: "open the directory \(path)") }
        let made = FileDescriptorOwner(raw)
        let status = try made.status()
        if status.st_uid == user { return true }
        guard status.st_uid == geteuid() else {
            throw TransferError(
                .pathNotAllowed, "\(path) belongs to the user \(status.st_uid), not to \(user)")
        }
        let list = AccessControlList([
            .init(.owner, 7), .init(.user, 7, id: user), .init(.owningGroup, 0), .init(.mask, 7), .init(.other, 0),
        ])
        for kind in [AccessControlList.Kind.defaults, .access] where try AccessControlList.read(kind, of: raw) != list {
            guard try !list.write(kind, to: raw) else { continue }
            // The user must at least be able to read whatever the umask lets everyone read.
            guard fchmod(raw, 0o777 & ~ProcessFile.umask()) == 0 else {
                throw .file(errno, doing: "open the directory \(path) to its user")
            }
            return false
        }
        return true
    }

    /// Whether the file system supports access control lists.
    package var hasAccessControlLists: Bool { AccessControlList.areSupported(to: descriptor.raw) }

    /// Grants a user search permission on this directory if she lacks it and the process's own user owns the directory.
    /// Listing it needs another permission.
    ///
    /// - Parameter groups: the user's groups. It is called only if they matter, since the lookup may go to another
    ///   machine.
    /// - Returns: `false` if the permission cannot be granted: the directory belongs to another user, or the file
    ///   system does not support access control lists.
    package func grantTraversal(_ uid: UInt32, groups: () -> [UInt32]) throws(TransferError) -> Bool {
        let status = try descriptor.status()
        let found = try AccessControlList.read(.access, of: descriptor.raw)
        let user = UserIdentity(
            uid: uid, groups: UserIdentity.isJudgedByNumber(uid, status, found) ? [] : groups())
        if user.may(.search, status, found) { return true }
        guard status.st_uid == geteuid() else { return false }
        let list = found ?? AccessControlList(mode: status.st_mode)
        return try list.granting(UserIdentity.Access.search.rawValue, to: uid).write(.access, to: descriptor.raw)
    }

    /// The access control list that new files here begin with; `nil` if there is none, or it cannot be read.
    var defaultAccess: AccessControlList? { (try? AccessControlList.read(.defaults, of: descriptor.raw)) ?? nil }

    /// Gives a file the permissions of a file newly created here with mode 0666: those of the directory's default
    /// access control list, or without one those that the umask leaves (acl(5), "OBJECT CREATION AND DEFAULT ACLS"). A
    /// file that was moved here from another directory thus has them too.
    ///
    /// A file system without modes, such as FAT, may refuse the change. On others, a file whose mode cannot be changed
    /// remains accessible to its owner only.
    ///
    /// - Parameter defaults: ``defaultAccess``.
    func setPermissions(of file: FileDescriptorOwner, umask: mode_t, defaults: AccessControlList?) {
        if let defaults, (try? defaults.limited(to: 6).write(.access, to: file.raw)) == true { return }
        _ = fchmod(file.raw, 0o666 & (defaults?.mode ?? ~umask))  // errors are ignored, see above
    }

    /// Whether `user` may replace the entry `name`: a file that she owns, or one that this process downloaded for her.
    /// In a directory that she owns she may replace everything.
    ///
    /// - Returns: `nil` if there is no entry of that name.
    package func mayReplace(_ name: String, for user: UInt32) -> Bool? {
        guard let found = status(of: name) else { return nil }
        if found.st_uid == user { return true }
        if let own = try? descriptor.status(), own.st_uid == user { return true }
        return found.st_uid == geteuid() && PartFile.isFetched(name, in: self, for: user)
    }

    /// Throws an error if the name is taken by a file of another user.
    package func checkReplacing(_ name: String, for user: UInt32?) throws(TransferError) {
        guard let user, mayReplace(name, for: user) == false else { return }
        throw TransferError(
            .permissionDenied,
            "\(path(of: name)) is not a file of the user \(user), and is not replaced; another policy than overwrite "
                + "gives the download a name of its own")
    }
}
