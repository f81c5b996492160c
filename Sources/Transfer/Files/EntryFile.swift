import CLinux
import Glibc

/// A regular file of a directory, opened once to be read: what is judged is what is read.
package final class EntryFile: Sendable {
    private let descriptor: FileDescriptorOwner
    /// The state that the file was in when it was opened.
    package let identity: UploadSource.Identity
    /// The uid of its owner.
    package let owner: UInt32
    /// Whether its mode, or its access control list, lets others than its owner write to it. A group with the owner's
    /// number is hers alone.
    package let isWritableByOthers: Bool

    init(_ descriptor: FileDescriptorOwner, _ status: stat) {
        self.descriptor = descriptor
        identity = UploadSource.Identity(status)
        owner = status.st_uid
        // The group's bits of a mode are the mask of a list (acl(5)).
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

    /// Whether it is still what it was when it was opened.
    package var isUnchanged: Bool { (try? descriptor.status()).map { UploadSource.Identity($0) == identity } ?? false }

    /// Whether someone has the file open to write.
    package enum Writers: Sendable {
        case none, some
        /// The file is another user's, or its file system does not say.
        case unknown
    }

    /// Asks the kernel by way of a lease (fcntl(2), `F_SETLEASE`), which it gives nobody while there is a writer.
    package func writers() -> Writers {
        let (setSignal, setLease): (Int32, Int32) = (10, 1024)  // F_SETSIG, F_SETLEASE
        // A writer who comes before the lease is given back makes the kernel send a signal, and its own choice ends the
        // process; this one is ignored where nobody waits for it.
        guard fcntl(descriptor.raw, setSignal, SIGURG) == 0 else { return .unknown }
        guard fcntl(descriptor.raw, setLease, Int32(F_RDLCK)) == 0 else { return errno == EAGAIN ? .some : .unknown }
        _ = fcntl(descriptor.raw, setLease, Int32(F_UNLCK))  // the lease goes with the descriptor at the latest
        return .none
    }

    /// The whole file.
    ///
    /// - Returns: `nil` where it is longer than `limit` bytes.
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

/// What an entry of a directory is, to whoever would read it.
package enum DirectoryEntry: Sendable {
    case file(EntryFile)
    /// A regular file that cannot be opened.
    case unreadable(UploadSource.Identity, owner: UInt32, reason: String)
    /// No regular file, or one that has other names as well.
    case other
    /// There is nothing of that name.
    case nothing
}

// What a directory is asked for in which others leave files.
extension Directory {
    /// Names that are read at most.
    private static let maximumNames = 100_000

    /// Looks at an entry without following a link or waiting for a FIFO.
    package func entry(_ name: String) -> DirectoryEntry {
        guard let known = status(of: name) else { return .nothing }
        guard Self.isPlainFile(known) else { return .other }
        guard let (descriptor, status) = open(reading: name) else {
            let error = errno
            if error == ENOENT { return .nothing }
            return error == ELOOP
                ? .other
                : .unreadable(
                    UploadSource.Identity(known), owner: known.st_uid,
                    reason: "cannot be opened: \(String(cString: strerror(error)))")
        }
        return Self.isPlainFile(status) ? .file(EntryFile(descriptor, status)) : .other
    }

    private static func isPlainFile(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1
    }

    /// The names of its entries in their bytes' order, those left out that are no UTF-8.
    package func names() throws(TransferError) -> [String] {
        let names = try names(atMost: Self.maximumNames) { name in
            !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// The names of the entries that are wanted, in no order; those that are no UTF-8 are left out.
    ///
    /// - Parameter isWanted: gets a name's bytes; nothing is made of those that it does not want.
    func names(
        atMost limit: Int, where isWanted: (Slice<UnsafeRawBufferPointer>) -> Bool
    ) throws(TransferError) -> [String] {
        let raw = openat(descriptor.raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw .file(errno, doing: "read the directory \(path)") }
        guard let stream = fdopendir(raw) else {
            let error = errno
            _ = close(raw)  // nothing was written to it
            throw .file(error, doing: "read the directory \(path)")
        }
        defer { _ = closedir(stream) }  // nothing was written to it
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

    /// The directory `name` in this one, made where it is missing; a link is refused.
    package func making(_ name: String) throws(TransferError) -> Directory {
        do throws(TransferError) {
            return try Directory.open(root: pathOfDescriptor, subdirectory: name)
        } catch {
            var told = error
            told.message = error.message.replacing(pathOfDescriptor, with: path)
            throw told
        }
    }

    /// Where the system finds it whatever its path leads to by now (proc(5)).
    package var pathOfDescriptor: String { "/proc/self/fd/\(descriptor.raw)" }

    /// Makes a file that holds `text`, readable by all, and brings it to the disk.
    ///
    /// - Returns: `false` where something has that name.
    package func makeFile(_ name: String, holding text: String) throws(TransferError) -> Bool {
        let raw = openat(descriptor.raw, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
        guard raw >= 0 else {
            if errno == EEXIST { return false }
            throw .file(errno, doing: "make \(name)")
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

    /// Gives the entry `name` a place and name in another directory of the file system.
    ///
    /// - Returns: `false` where something has that name there. On a file system that cannot tell by itself (renameat2(2),
    ///   `EINVAL`) it is looked for before.
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
