import CLinux
import Glibc

/// A regular file of a directory, opened once for reading, so that the validated file is the file that is read.
package final class EntryFile: Sendable {
    private let descriptor: FileDescriptorOwner
    /// The state of the file when it was opened.
    package let identity: UploadSource.Identity
    /// The uid of the file's owner.
    package let owner: UInt32
    /// Whether the mode or the access control list lets users other than the owner write to the file. A group with the
    /// same number as the owner is regarded as private to the owner.
    package let isWritableByOthers: Bool

    init(_ descriptor: FileDescriptorOwner, _ status: stat) {
        self.descriptor = descriptor
        identity = UploadSource.Identity(status)
        owner = status.st_uid
        // For a file with an access control list, the group bits of the mode are the list's mask (acl(5)).
        let isByGroup = status.st_mode & 0o020 != 0
        isWritableByOthers =
            status.st_mode & 0o002 != 0
            || isByGroup && (status.st_gid != status.st_uid || Self.mayHaveList(descriptor.raw))
    }

    private static func mayHaveList(_ descriptor: Int32) -> Bool {
        do throws(TransferError) {
            return try AccessControlList.read(.access, of: descriptor) != nil
        } catch {
            return true
        }
    }

    /// Whether the file is in the same state as when it was opened.
    package var isUnchanged: Bool { (try? descriptor.status()).map { UploadSource.Identity($0) == identity } ?? false }

    /// The presence of processes that have the file open for writing.
    package enum Writers: Sendable {
        case none, some
        /// The file belongs to another user, or its file system does not support the query.
        case unknown
    }

    /// Queries the kernel with a lease (fcntl(2), `F_SETLEASE`), which it does not grant while the file is open for
    /// writing.
    package func writers() -> Writers {
        let (setSignal, setLease): (Int32, Int32) = (10, 1024)  // F_SETSIG, F_SETLEASE
        // If the file is opened for writing before the lease is released, the kernel sends a signal. The default signal
        // ends the process; SIGURG is ignored unless it is handled.
        guard fcntl(descriptor.raw, setSignal, SIGURG) == 0 else { return .unknown }
        guard fcntl(descriptor.raw, setLease, Int32(F_RDLCK)) == 0 else { return errno == EAGAIN ? .some : .unknown }
        _ = fcntl(descriptor.raw, setLease, Int32(F_UNLCK))  // closing the descriptor ends the lease at the latest
        return .none
    }

    /// Reads the whole file.
    ///
    /// - Returns: `nil` if it is longer than `limit` bytes.
    package func read(limit: Int) throws(TransferError) -> [UInt8]? {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let offset = Int64(bytes.count)
            let count = try readChunk(&chunk, at: offset)
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= limit else { return nil }
        }
    }

    private func readChunk(_ chunk: inout [UInt8], at offset: Int64) throws(TransferError) -> Int {
        let result: Result<Int, TransferError> = chunk.withUnsafeMutableBytes { space in
            do throws(TransferError) {
                return .success(try descriptor.read(into: space, at: offset))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}

/// The kind of a directory entry, for a reader of the directory.
package enum DirectoryEntry: Sendable {
    case file(EntryFile)
    /// A regular file that cannot be opened.
    case unreadable(UploadSource.Identity, reason: String)
    /// A regular file on which a program has a lease (fcntl(2), `F_SETLEASE`). The kernel has told the program to give it
    /// up.
    case leased(UploadSource.Identity)
    /// An entry that is not a regular file, or is one with further hard links.
    case other
    /// A missing entry.
    case nothing
}

// Access to a directory in which other programs leave files.
extension Directory {
    /// The maximum number of names read.
    private static let maximumNames = 100_000

    /// Opens an entry, without following a symbolic link or blocking on a FIFO.
    package func entry(_ name: String) -> DirectoryEntry {
        guard let known = status(of: name) else { return .nothing }
        guard Self.isPlainFile(known) else { return .other }
        guard let (descriptor, status) = open(reading: name) else {
            let error = errno
            switch error {
            case ENOENT: return .nothing
            case ELOOP: return .other
            case EAGAIN: return .leased(UploadSource.Identity(known))
            default:
                return .unreadable(
                    UploadSource.Identity(known), reason: "cannot be opened: \(String(cString: strerror(error)))")
            }
        }
        return Self.isPlainFile(status) ? .file(EntryFile(descriptor, status)) : .other
    }

    private static func isPlainFile(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1
    }

    /// Returns the names of the entries, sorted by their bytes. Names that are not valid UTF-8 are left out.
    package func names() throws(TransferError) -> [String] {
        let names = try names(atMost: Self.maximumNames) { name in
            !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// Returns the names of the wanted entries, in no particular order. Names that are not valid UTF-8 are left out.
    ///
    /// - Parameter isWanted: receives a name's bytes; no string is created for a name that it rejects.
    func names(
        atMost limit: Int, where isWanted: (Slice<UnsafeRawBufferPointer>) -> Bool
    ) throws(TransferError) -> [String] {
        let raw = openat(descriptor.raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw .file(errno, doing: "read the directory \(path)") }
        guard let stream = fdopendir(raw) else {
            let error = errno
            _ = close(raw)  // nothing was written to the descriptor
            throw .file(error, doing: "read the directory \(path)")
        }
        defer { _ = closedir(stream) }  // nothing was written to the descriptor
        var names: [String] = []
        while names.count < limit {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw .file(errno, doing: "read the directory \(path)") }
                break
            }
            withUnsafeBytes(of: &entry.pointee.d_name) { space in
                let bytes = space.prefix { $0 != 0 }
                if isWanted(bytes), let name = String(validating: bytes, as: UTF8.self) { names.append(name) }
            }
        }
        return names
    }

    /// Opens the directory `name` in this one and creates it if it is missing; a symbolic link is refused.
    package func making(_ name: String) throws(TransferError) -> Directory {
        do throws(TransferError) {
            return try Directory.open(root: pathOfDescriptor, subdirectory: name)
        } catch {
            var told = error
            told.message = error.message.replacing(pathOfDescriptor, with: path)
            throw told
        }
    }

    /// A path to this directory that stays valid whatever its original path leads to (proc(5)).
    package var pathOfDescriptor: String { "/proc/self/fd/\(descriptor.raw)" }

    /// Creates a file with the content `text`, readable by all, and syncs it (fdatasync).
    ///
    /// - Returns: `false` if the name is taken.
    package func makeFile(_ name: String, holding text: String) throws(TransferError) -> Bool {
        let raw = openat(descriptor.raw, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
        guard raw >= 0 else {
            if errno == EEXIST { return false }
            throw .file(errno, doing: "create \(name)")
        }
        let file = FileDescriptorOwner(raw)
        _ = fchmod(raw, 0o644)  // a file system without modes, such as FAT, may refuse it
        var text = text
        let result: Result<Void, TransferError> = text.withUTF8 { bytes in
            do throws(TransferError) {
                return .success(try file.write(UnsafeRawBufferPointer(bytes), at: 0))
            } catch {
                return .failure(error)
            }
        }
        do throws(TransferError) {
            try result.get()
            try file.synchronize()
        } catch {
            try remove(name)
            throw error
        }
        return true
    }

    /// Moves the entry `name` to another directory of the same file system, under a new name.
    ///
    /// - Returns: `false` if the new name is taken. On a file system that cannot rename without replacing
    ///   (renameat2(2), `EINVAL`), the name is checked before the rename.
    package func move(_ name: String, to other: Directory, as newName: String) throws(TransferError) -> Bool {
        if linux_rename_noreplace(descriptor.raw, name, other.descriptor.raw, newName) == 0 { return true }
        if errno == EEXIST { return false }
        guard errno == EINVAL || errno == ENOSYS else { throw .file(errno, doing: "move \(name)") }
        if other.contains(newName) { return false }
        guard renameat(descriptor.raw, name, other.descriptor.raw, newName) == 0 else {
            throw .file(errno, doing: "move \(name)")
        }
        return true
    }
}
