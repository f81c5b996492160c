import Glibc
import TaskModel
import Transfer

/// Opening and making the directory of a download, as far as the task's owner may.
extension DownloadPlace {
    /// Opens the directory; makes what is missing.
    ///
    /// - Parameter user: the task's owner.
    /// - Throws: `permissionDenied`, without a system's error, where the user may not put files there.
    func make(for user: UserIdentity, settings: QueueSettings) throws(TransferError) -> Directory {
        if let own {
            let home = try Directory.open(root: root, makesRoot: makesRoot)
            _ = try home.makePrivate(own.name, for: own.user)
            _ = try home.letThrough(own.user) { AccountNames.groups(of: own.user) }
        }
        let judge = PlaceJudge(place: self, user: user, settings: settings)
        // Several times: somebody may make the same directory meanwhile.
        for _ in 0..<Self.attempts {
            do throws(TransferError) {
                if let found = try existing() {
                    try judge.check(found)
                    return found
                }
            } catch {
                // What stands in the way there is told to those alone who may look.
                if error.systemError != nil { try judge.check(try nearest().directory, makes: true) }
                throw error
            }
            let (directory, missing) = try nearest()
            // In the very directory that was judged, whatever its name leads to by now.
            try judge.check(directory, makes: true)
            guard let made = try directory.make(missing) else { continue }
            try judge.check(made)
            return made
        }
        throw TransferError(.io, "\(path) is made and removed by someone else again and again")
    }

    private static let attempts = 5

    /// Opens the directory where it is.
    ///
    /// - Returns: `nil` where there is none.
    func existing() throws(TransferError) -> Directory? { try existing(subdirectory) }

    private func existing(_ subdirectory: String) throws(TransferError) -> Directory? {
        do throws(TransferError) {
            return try Directory.open(existing: root, subdirectory: subdirectory)
        } catch {
            if error.systemError == ENOENT || error.systemError == ENOTDIR { return nil }
            throw error
        }
    }

    /// Why the user may put nothing there, as far as that can be told before anything is made; `nil` where she may, and
    /// where something else is wrong.
    func refusal(for user: UserIdentity, settings: QueueSettings) -> TransferError? {
        let judge = PlaceJudge(place: self, user: user, settings: settings)
        do throws(TransferError) {
            if let found = (try? existing()) ?? nil {
                try judge.check(found)
            } else {
                try judge.check(try nearest().directory, makes: true)
            }
            return nil
        } catch {
            return error.systemError == nil ? error : nil
        }
    }

    /// The directory on the way to this one that can be opened and is nearest to it, the root in the end; and the names
    /// that are missing beneath it.
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

/// Judges whether a user may put files into a directory beneath a root.
///
/// No directory of the daemon itself takes any. What the administrator named, and what the daemon made, may be used by
/// everyone who can come there; elsewhere the user needs the rights that the kernel would ask of her. A daemon that
/// runs as root tells what it made by a mark: whatever else is root's is not the daemon's.
struct PlaceJudge {
    let place: DownloadPlace
    let user: UserIdentity
    let settings: QueueSettings

    /// - Parameter makes: directories are to be made in it, and not only files.
    func check(_ directory: Directory, makes: Bool = false) throws(TransferError) {
        let steps = try directory.steps(upTo: try Directory.open(root: place.root).inode)
        let protected = settings.protectedPlaces.inodes
        guard !steps.contains(where: { protected.contains($0.inode) }) else {
            throw TransferError(
                .pathNotAllowed, "\(place.path) lies in a directory of the daemon itself; name another one")
        }
        guard place.own == nil, !settings.isTrusted(user.uid) else { return }
        for (index, step) in steps.enumerated() {
            let isRoot = index == steps.count - 1
            let isDaemons =
                step.status.st_uid == settings.daemonUser && (isRoot || settings.daemonUser != 0 || step.isMade)
            if isDaemons, isRoot { return }
            guard step.may(index == 0 && !isDaemons ? [.write, .search] : .search, user) else { throw refusal }
        }
        // The root is someone else's: whoever cannot come to it has no business in it.
        do throws(PathWalk.Stop) {
            _ = try PathWalk.follow(place.root, as: user)
        } catch {
            throw refusal
        }
    }

    /// The same words whatever there is.
    private var refusal: TransferError {
        TransferError(
            .permissionDenied,
            "the user \(AccountNames.name(of: user.uid) ?? "\(user.uid)") may not write to \(place.path)")
    }
}
