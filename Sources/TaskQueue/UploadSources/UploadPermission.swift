import Glibc
import TaskModel
import Transfer

/// The permission check for uploads. The daemon's own user and root may send any file. Other users may send a regular
/// file beneath the upload roots that the kernel would let them reach and read.
struct UploadPermission {
    let settings: QueueSettings
    let user: UserIdentity

    /// Opens the file of an upload.
    ///
    /// - Returns: the open file, so that the file checked is the file sent.
    /// - Throws: `permissionDenied`, with the same text whatever exists at a path that the user may not follow;
    ///   `sourceChanged` where the user may learn that the file does not exist; and the errors of
    ///   ``UploadSource/init(path:)``.
    func open(_ path: String) throws(TransferError) -> UploadSource {
        if settings.isTrusted(user.uid) { return try openAsDaemon(path) }
        // Nothing is examined where no upload is allowed.
        let refusal = refusal(of: path)
        guard !settings.uploadRoots.isEmpty else { throw refusal }
        let node: PathWalk.Node
        do throws(PathWalk.Stop) {
            node = try PathWalk.follow(path, as: user)
        } catch {
            // Beneath the roots, the user could find out on their own that the file is missing.
            guard error.refusal == .missing, leadsToUploads(error.parents) else { throw refusal }
            throw TransferError(.sourceChanged, "there is no file \(path) to upload", systemError: ENOENT)
        }
        // On a network file system the mode bits do not show which access the remote machine grants.
        guard leadsToUploads(node.parents), node.may(.read, user), !node.isOnAnotherMachine else { throw refusal }
        return try UploadSource(node, path: path)
    }

    private func leadsToUploads(_ parents: [Inode]) -> Bool {
        let roots = Set(settings.uploadRoots.compactMap { Inode.at($0) })
        return settings.protectedPlaces.areAvoided(by: parents, beneath: roots) ?? false
    }

    private func refusal(of path: String) -> TransferError {
        TransferError(
            .permissionDenied,
            "user \(user.uid) may not upload \(path): see uploads.roots in the daemon's configuration")
    }

    /// Opens a file that the daemon's permissions alone decide about.
    private func openAsDaemon(_ path: String) throws(TransferError) -> UploadSource {
        do throws(TransferError) {
            return try UploadSource(path: path)
        } catch {
            var error = error
            let remedy: String? =
                switch error.systemError {
                case ENOENT, EACCES, EPERM: settings.inspector.remedy(forUnreadable: path, error.systemError)
                default: nil
                }
            if let remedy { error.message += "; \(remedy)" }
            throw error
        }
    }
}
