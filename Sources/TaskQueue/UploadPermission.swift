import Glibc
import TaskModel
import Transfer

/// Who may send which file: the daemon's own user and root any; others a regular file beneath the upload roots to which
/// the kernel would let them come, and which it would let them read.
struct UploadPermission {
    let settings: QueueSettings
    let user: UserIdentity

    /// - Returns: the file, open: what was judged is what will be sent.
    /// - Throws: `permissionDenied`, with the same words whatever there is at a path that the user may not follow;
    ///   `sourceChanged` where she may see that there is no such file, and what ``UploadSource/init(path:)`` throws.
    func open(_ path: String) throws(TransferError) -> UploadSource {
        if settings.isTrusted(user.uid) { return try UploadSource(path: path) }
        // Nothing is looked at where nothing may be sent.
        guard !settings.uploadRoots.isEmpty else { throw refusal }
        let node: PathWalk.Node
        do throws(PathWalk.Stop) {
            node = try PathWalk.follow(path, as: user)
        } catch {
            // Beneath the roots she could see as much by herself.
            guard error.refusal == .missing, leadsToUploads(error.parents) else { throw refusal }
            throw TransferError(.sourceChanged, "there is no file \(path) to upload", systemError: ENOENT)
        }
        // What another machine's file system grants, its modes do not tell.
        guard leadsToUploads(node.parents), node.may(.read, user), !node.isOnAnotherMachine else { throw refusal }
        return try UploadSource(node, path: path)
    }

    private func leadsToUploads(_ parents: [Inode]) -> Bool {
        let roots = Set(settings.uploadRoots.compactMap { Inode.at($0) })
        return settings.protectedPlaces.areAvoided(by: parents, beneath: roots) ?? false
    }

    private var refusal: TransferError {
        TransferError(
            .permissionDenied,
            "user \(user.uid) may not upload it: see uploads.roots in the daemon's configuration")
    }
}
