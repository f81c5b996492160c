import Glibc
import TaskModel
import Transfer

/// Who may send which file: the daemon's own user and root any, others only what lies beneath the upload roots and
/// is theirs or everyone's to read.
struct UploadPermission {
    let settings: QueueSettings
    let owner: UInt32

    /// - Returns: the file, open: what was judged is what will be sent.
    /// - Throws: `permissionDenied`, whatever there is at a path that leads elsewhere, and also where nothing is;
    ///   `sourceChanged` where there is no such file, and what ``UploadSource/init(path:)`` throws.
    func open(_ path: String) throws(TransferError) -> UploadSource {
        if owner == settings.daemonUser || owner == 0 { return try UploadSource(path: path) }
        guard leadsBeneathRoots(path) else { throw refusal }
        let source = try UploadSource(path: path)
        try check(source, path: path)
        return source
    }

    /// - Parameter source: opened already, so that what is judged is what will be sent.
    func check(_ source: UploadSource, path: String) throws(TransferError) {
        if owner == settings.daemonUser || owner == 0 { return }
        var status = stat()
        // The path may lead to another file by now than the one that was opened.
        guard let resolved = Self.resolve(path), isBeneathRoots(resolved), lstat(resolved, &status) == 0,
            UInt64(status.st_dev) == source.identity.device, UInt64(status.st_ino) == source.identity.inode,
            source.owner == owner || source.mode & 0o004 != 0
        else { throw refusal }
    }

    private var refusal: TransferError {
        TransferError(
            .permissionDenied, "user \(owner) may not upload it: see uploads.roots in the daemon's configuration")
    }

    /// Asked before anything is opened, so that nobody learns what there is elsewhere.
    private func leadsBeneathRoots(_ path: String) -> Bool {
        if let resolved = Self.resolve(path) { return isBeneathRoots(resolved) }
        // There is no such file: the directory counts, and a link counts for where it leads, which is nowhere.
        var status = stat()
        guard lstat(path, &status) != 0, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return false }
        guard let directory = Self.resolve(String(path[...slash])) else { return false }
        return isBeneathRoots(directory == "/" ? directory : directory + "/")
    }

    /// - Parameter resolved: without links.
    private func isBeneathRoots(_ resolved: String) -> Bool {
        settings.uploadRoots.contains { root in
            guard let root = Self.resolve(root) else { return false }
            return resolved.utf8.starts(with: (root == "/" ? root : root + "/").utf8)
        }
    }

    /// Without links.
    private static func resolve(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }
}
