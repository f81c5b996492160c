import Glibc
import TaskModel
import Transfer

/// Opens and creates the directory of a download, within the permissions of the task's owner.
extension DownloadPlace {
    /// Resolves the directory of a download.
    ///
    /// - Throws: `pathNotAllowed` where the configuration does not allow it, or does not any more.
    init(allowed directory: String?, owner: UInt32, settings: QueueSettings) throws(TransferError) {
        do throws(FieldError) {
            try self.init(directory: directory, owner: owner, settings: settings)
        } catch {
            throw TransferError(.pathNotAllowed, error.message)
        }
    }

    /// Opens the directory and creates its missing components.
    ///
    /// - Parameter user: the task's owner.
    /// - Throws: `permissionDenied`, without a system error, where the user may not create files there.
    func make(for user: UserIdentity, settings: QueueSettings) throws(TransferError) -> Directory {
        if let own {
            let home = try Directory.open(root: root, makesRoot: makesRoot)
            _ = try home.makePrivate(own.name, for: own.user)
            _ = try home.grantTraversal(own.user) { AccountNames.groups(of: own.user) }
        }
        let evaluator = PlaceEvaluator(place: self, user: user, settings: settings)
        // Several attempts, since another process may create the same directory concurrently.
        for _ in 0..<Self.attempts {
            do throws(TransferError) {
                if let found = try existing() {
                    try evaluator.check(found)
                    return found
                }
            } catch {
                // The error reveals what exists there, so it is reported only to a user who may access the directory.
                if error.systemError != nil { try evaluator.check(try nearest().directory, makes: true) }
                throw error
            }
            let (directory, missing) = try nearest()
            // The check applies to the open directory in which the missing ones are created, whatever its name leads to
            // by now.
            try evaluator.check(directory, makes: true)
            guard let made = try directory.make(missing) else { continue }
            try evaluator.check(made)
            return made
        }
        throw TransferError(.io, "\(path) is repeatedly created and removed by another process")
    }

    private static let attempts = 5

    /// Opens the existing directory.
    ///
    /// - Returns: `nil` where it does not exist.
    func existing() throws(TransferError) -> Directory? { try existing(subdirectory) }

    private func existing(_ subdirectory: String) throws(TransferError) -> Directory? {
        do throws(TransferError) {
            if followsLinks { return try Directory.open(root: root + subdirectory) }
            return try Directory.open(existing: root, subdirectory: subdirectory)
        } catch {
            if error.systemError == ENOENT || error.systemError == ENOTDIR { return nil }
            throw error
        }
    }

    /// Returns the reason why the user may not create files in the directory, as far as it can be determined before
    /// anything is created. `nil` where the user may, and for any other error.
    func refusal(for user: UserIdentity, settings: QueueSettings) -> TransferError? {
        let evaluator = PlaceEvaluator(place: self, user: user, settings: settings)
        do throws(TransferError) {
            if let found = (try? existing()) ?? nil {
                try evaluator.check(found)
            } else {
                try evaluator.check(try nearest().directory, makes: true)
            }
            return nil
        } catch {
            return error.systemError == nil ? error : nil
        }
    }

    /// Whether a symbolic link is on the way from the root to the directory. None is followed there.
    var hasLink: Bool {
        guard !followsLinks, !subdirectory.isEmpty, let (found, missing) = try? nearest(), let name = missing.first
        else {
            return false
        }
        var information = stat()
        return lstat(found.path(of: name), &information) == 0 && information.st_mode & S_IFMT == S_IFLNK
    }

    /// Returns the deepest existing directory on the path that can be opened, in the last resort the root, and the
    /// names of the missing directories beneath it.
    private func nearest() throws(TransferError) -> (directory: Directory, missing: [String]) {
        var names = subdirectory.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
            .filter { $0 != "." }
        var missing: [String] = []
        while let name = names.popLast() {
            missing.insert(name, at: 0)
            if let found = (try? existing(names.joined(separator: "/"))) ?? nil { return (found, missing) }
        }
        return (try Directory.open(root: root, makesRoot: makesRoot), missing)
    }
}

/// A check of whether a user may create files in a directory beneath a root.
///
/// The daemon's own directories are never allowed. The common directory (`downloads.directory`) and directories that the
/// daemon created are open to every user who can reach them. Elsewhere, also in the roots themselves, the user needs the
/// permissions that the kernel would require. A daemon that runs as root recognises the directories it created by a
/// mark; other directories of root are not the daemon's.
struct PlaceEvaluator {
    let place: DownloadPlace
    let user: UserIdentity
    let settings: QueueSettings

    /// Checks a directory.
    ///
    /// - Parameter makes: Whether directories are to be created in it, and not only files.
    func check(_ directory: Directory, makes: Bool = false) throws(TransferError) {
        let steps = try directory.steps(upTo: try Directory.open(root: place.root).inode)
        let protected = settings.protectedPlaces.inodes
        guard !steps.contains(where: { protected.contains($0.inode) }) else {
            throw TransferError(
                .pathNotAllowed, "\(place.path) is in a directory of the daemon itself; choose another")
        }
        guard place.own == nil, !settings.isTrusted(user.uid) else { return }
        for (index, step) in steps.enumerated() {
            let isRoot = index == steps.count - 1
            let isDaemons =
                step.status.st_uid == settings.daemonUser
                && (isRoot ? place.makesRoot : settings.daemonUser != 0 || step.isMade)
            if isDaemons, isRoot { return }
            guard step.may(index == 0 && !isDaemons ? [.write, .search] : .search, user) else { throw refusal }
        }
        // The root belongs to another user, so the user must be able to reach it.
        do throws(PathWalk.Stop) {
            _ = try PathWalk.follow(place.root, as: user)
        } catch {
            throw refusal
        }
    }

    /// The error has the same text in all cases, so that it does not reveal what exists.
    private var refusal: TransferError {
        TransferError(
            .permissionDenied,
            "the user \(AccountNames.name(of: user.uid) ?? "\(user.uid)") may not write to \(place.path)")
    }
}
