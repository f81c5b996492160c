import Glibc

/// A file that holds the resume data of one download, so that the download can be resumed after a crash of the program
/// or of the machine.
///
///     let file = ResumeDataFile(path: "/var/lib/app/image.resume")
///     let image = try await manager.download(url, to: "/srv/image.iso", resumeDataFile: file).value
///
/// Each version of the file replaces the previous one in one step, and is synced to the disk first. Until then it has the
/// same path with `.new` at the end. The file has mode 600, since it contains the URL of the request.
public struct ResumeDataFile: Sendable, Equatable {
    /// The path of the file; its directory must exist.
    public let path: String

    /// The size in bytes from which on a file is not read: resume data are far smaller.
    private static let maximumSize: Int64 = 64 << 20

    /// The path of a version that is being written.
    private var newPath: String { path + ".new" }

    /// - Parameter path: the path of the file, absolute or relative to the process's directory.
    public init(path: String) { self.path = path }

    /// Returns the resume data in the file.
    ///
    /// - Returns: `nil` if there is no file, or if it holds no resume data.
    /// - Throws: ``TransferError`` if the file cannot be read.
    public func load() throws(TransferError) -> ResumeData? {
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard raw >= 0 else {
            if errno == ENOENT { return nil }
            throw .file(errno, doing: "read the resume data \(path)")
        }
        let descriptor = FileDescriptorOwner(raw)
        let size = Int64(try descriptor.status().st_size)
        guard size > 0, size <= Self.maximumSize else { return nil }
        var failure: TransferError?
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) { space, count in
            do throws(TransferError) {
                count = try descriptor.read(into: UnsafeMutableRawBufferPointer(space), at: 0)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return ResumeData(bytes: bytes)
    }

    /// Replaces the contents of the file, and syncs the file and its directory. Blocks.
    ///
    /// - Throws: ``TransferError``; the earlier contents are then intact.
    public func store(_ resumeData: ResumeData) throws(TransferError) {
        let new = newPath
        // What a crash or another program left there has its own mode, and may be a link or a pipe.
        guard unlink(new) == 0 || errno == ENOENT else { throw .file(errno, doing: "remove \(new)") }
        let raw = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard raw >= 0 else { throw .file(errno, doing: "create \(new)") }
        do throws(TransferError) {
            let descriptor = FileDescriptorOwner(raw)
            var failure: TransferError?
            resumeData.bytes.withUnsafeBytes { bytes in
                do throws(TransferError) {
                    try descriptor.write(bytes, at: 0)
                } catch {
                    failure = error
                }
            }
            if let failure { throw TransferError.file(failure.systemError ?? EIO, doing: "write \(new)") }
            guard fsync(raw) == 0 else { throw TransferError.file(errno, doing: "sync \(new)") }
            guard rename(new, path) == 0 else { throw TransferError.file(errno, doing: "rename \(new)") }
        } catch {
            _ = unlink(new)  // the error is reported already
            throw error
        }
        try syncDirectory()
    }

    /// Removes the file, and what a crash left of a newer version, and syncs the directory if there was either. Blocks.
    public func remove() throws(TransferError) {
        var isChanged = false
        for name in [path, newPath] {
            if unlink(name) == 0 {
                isChanged = true
            } else if errno != ENOENT {
                throw .file(errno, doing: "remove the resume data \(name)")
            }
        }
        if isChanged { try syncDirectory() }
    }

    private func syncDirectory() throws(TransferError) {
        let directory = path.contains("/") ? String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) + "/" : "."
        let raw = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw .file(errno, doing: "open the directory \(directory)") }
        let descriptor = FileDescriptorOwner(raw)
        guard fsync(descriptor.raw) == 0 else { throw .file(errno, doing: "sync the directory \(directory)") }
    }
}
