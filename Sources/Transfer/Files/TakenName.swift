import Glibc

/// The underlying error of a name conflict at a destination that accepts the existing file
/// (``FileDestination/Conflict/skip``), or whose server has the same version
/// (``FileDestination/keepsCurrentFile``).
struct TakenName: Error {
    let destination: FileDestination
    let directory: Directory

    /// Returns the existing file, after it is verified against the known digests. Blocks.
    ///
    /// - Throws: if it is not the file that was to be downloaded.
    func file() throws(TransferError) -> PublishedFile {
        let path = directory.path(of: destination.name)
        guard destination.digest != nil || destination.pieces != nil else {
            guard let size = directory.sizeOfFile(destination.name) else {
                throw TransferError(.nameConflict, "\(path) exists and is not a regular file")
            }
            return PublishedFile(path: path, size: size, isVerified: false, wasPresent: true)
        }
        guard let (descriptor, status) = directory.open(reading: destination.name) else {
            throw .file(errno, doing: "read \(path)")
        }
        guard status.st_mode & S_IFMT == S_IFREG, try isRight(descriptor, Int64(status.st_size)) else {
            throw TransferError(.nameConflict, "the file \(path) already exists with another checksum")
        }
        return PublishedFile(path: path, size: Int64(status.st_size), isVerified: true, wasPresent: true)
    }

    private func isRight(_ file: FileDescriptorOwner, _ size: Int64) throws(TransferError) -> Bool {
        if let digest = destination.digest, try !digest.isRight(for: file, size) { return false }
        guard let pieces = destination.pieces else { return true }
        return try pieces.goodRanges(of: file, size: size).count == size
    }
}

extension TransferError {
    static func taken(_ destination: FileDestination, in directory: Directory) -> TransferError {
        .taken(destination.name, in: directory, underlying: TakenName(destination: destination, directory: directory))
    }

    /// Returns the error for a name that is already taken.
    package static func taken(
        _ name: String, in directory: Directory, underlying: (any Error)? = nil
    ) -> TransferError {
        let what = directory.isDirectory(name) ? "directory" : "file"
        return TransferError(
            .nameConflict, "there is already a \(what) \(directory.path(of: name))", underlying: underlying)
    }
}
