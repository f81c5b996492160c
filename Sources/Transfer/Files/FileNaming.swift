import CLinux
import Glibc

/// The naming of the complete files of one batch. It validates each part file and gives it its final name.
///
/// Facts about a directory are determined once for the batch.
struct FileNaming {
    /// The facts about a directory that apply to all of its files.
    private struct Common {
        /// The current path of the directory.
        var path: String
        /// The default access control list, read with the first file that needs it.
        var defaults: AccessControlList??
    }

    /// The maximum number of attempts at a numbered name that others take first.
    private static let raceLimit = 100

    private let umask: mode_t
    private let earlierNames: EarlierNames
    private var common: [ObjectIdentifier: Common] = [:]

    /// - Parameter umask: the umask of the process.
    init(umask: mode_t, earlierNames: EarlierNames) {
        self.umask = umask
        self.earlierNames = earlierNames
    }

    /// The sync after which a file's name survives a power failure.
    enum NameSync {
        case directory
        /// The whole file system: the file had no name before, or an earlier process gave it its name.
        case fileSystem
    }

    /// A file with its final name, which may not be on the disk yet.
    struct Named {
        var file: PublishedFile
        var sync: NameSync
    }

    /// Gives a file its name.
    mutating func name(_ item: Publisher.Item) throws(TransferError) -> Named {
        let part = item.part
        let directory = part.directory
        let status = try part.checkName()
        if try part.check(status, holds: item.size).wasModified {
            throw TransferError(.remoteChanged, "another process changed the part file")
        }
        let path = try place(of: part)
        // A file without a name was created with its permissions, but before Linux 6.0 without the umask.
        if !item.destination.isPrivate, part.isNamed || status.st_mode & 0o777 & umask != 0 {
            directory.setPermissions(of: part.descriptor, umask: umask, defaults: defaults(of: directory))
        }
        if let user = item.destination.user { part.record(user: user) }
        if let time = item.destination.modificationTime {
            _ = linux_set_modification_time(part.descriptor.raw, time)  // errors ignored: a wrong time is acceptable
        }
        item.destination.version?.record(on: part.descriptor)
        let wanted = item.destination.name
        func published(_ name: String, by sync: NameSync) -> Named {
            Named(
                file: PublishedFile(
                    path: Directory.path(of: name, in: path), size: item.size, isVerified: item.isVerified),
                sync: sync)
        }
        let sync: NameSync = part.isNamed ? .directory : .fileSystem
        if case .overwrite = item.destination.conflict {
            if let owner = item.destination.replaceable, directory.contains(wanted),
                PartFile.isPublished(wanted, in: directory, by: owner) == nil
            {
                throw .taken(wanted, in: directory)
            }
            try replace(wanted, with: part, of: item.destination.user)
            return published(wanted, by: .directory)
        }
        if try Self.give(wanted, to: part) { return published(wanted, by: sync) }
        if PartFile.isPublished(wanted, in: directory, by: item.owner) == item.size {
            // The file was published by an earlier process and downloaded again by this one.
            try part.remove()
            return published(wanted, by: .fileSystem)
        }
        switch item.destination.conflict {
        case .rename(let numbering):
            let (name, isEarlier) = try number(item, numbering)
            return published(name, by: isEarlier ? .fileSystem : sync)
        case .skip: throw .taken(item.destination, in: directory)
        case .fail, .overwrite: throw .taken(wanted, in: directory)
        }
    }

    // MARK: What the files of a directory have in common

    private mutating func place(of part: PartFile) throws(TransferError) -> String {
        let key = ObjectIdentifier(part.directory)
        if let known = common[key]?.path { return known }
        // A file whose place is gone is treated on its own.
        let path = try part.checkPlace()
        common[key] = Common(path: path)
        return path
    }

    private mutating func defaults(of directory: Directory) -> AccessControlList? {
        let key = ObjectIdentifier(directory)
        if let known = common[key]?.defaults { return known }
        let defaults = directory.defaultAccess
        common[key]?.defaults = .some(defaults)
        return defaults
    }

    // MARK: Names

    private func replace(_ name: String, with part: PartFile, of user: UInt32?) throws(TransferError) {
        let directory = part.directory
        try directory.checkReplacing(name, for: user)
        guard renameat(directory.descriptor.raw, part.name, directory.descriptor.raw, name) == 0 else {
            if errno == EISDIR {
                throw TransferError(.nameConflict, "\(directory.path(of: name)) is a directory")
            }
            throw Self.refusal(errno, part, name)
        }
    }

    /// Gives the file a numbered name.
    ///
    /// - Returns: the name, and whether an earlier process has published the file under it.
    private func number(
        _ item: Publisher.Item, _ numbering: @escaping @Sendable (String, Int) -> String
    ) throws(TransferError) -> (name: String, isEarlier: Bool) {
        let (part, wanted) = (item.part, item.destination.name)
        let directory = part.directory
        if let earlier = earlierNames.find(item.owner, wanting: wanted, in: directory, numbering: numbering),
            earlier.size == item.size
        {
            try part.remove()
            return (earlier.name, true)
        }
        let names = NumberedNames(directory: directory, wanted: wanted, numbering: numbering)
        var lost = 0
        for _ in 0..<Self.raceLimit {
            guard let free = names.free(above: lost) else { break }
            let name = names.name(free)
            if try Self.give(name, to: part) { return (name, false) }
            // Another process took the name first.
            lost = free
        }
        // A problem of the directory that may be temporary.
        throw TransferError(
            .io, "all names like \(directory.path(of: wanted)) are taken", systemError: EEXIST)
    }

    /// Gives the file a free name.
    ///
    /// - Returns: `false` if the name is taken.
    private static func give(_ name: String, to part: PartFile) throws(TransferError) -> Bool {
        let error = part.isNamed ? renameWithoutReplacing(part.name, to: name, in: part.directory) : link(part, name)
        if error == 0 { return true }
        guard error == EEXIST else { throw refusal(error, part, name) }
        return false
    }

    private static func refusal(_ error: Int32, _ part: PartFile, _ name: String) -> TransferError {
        let deed = "name the file \(name)"
        guard error == EINVAL else { return part.directory.refusal(error, doing: deed, of: part.name, name) }
        return .naming(error, doing: deed)
    }

    /// - Returns: 0 or the `errno`.
    private static func link(_ part: PartFile, _ name: String) -> Int32 {
        linux_link_unnamed(part.descriptor.raw, part.directory.descriptor.raw, name) == 0 ? 0 : errno
    }

    /// - Returns: 0 or the `errno`.
    private static func renameWithoutReplacing(_ old: String, to new: String, in directory: Directory) -> Int32 {
        let descriptor = directory.descriptor.raw
        if linux_rename_noreplace(descriptor, old, descriptor, new) == 0 { return 0 }
        let error = errno
        guard error == EINVAL || error == ENOSYS else { return error }
        // Some file systems do not support renaming without replacing. A second hard link and the removal of the first
        // name are equivalent.
        guard linkat(descriptor, old, descriptor, new, 0) == 0 else {
            let refusal = errno
            let isLocked = linux_locked(descriptor, old) != 0 || linux_locked(descriptor, "") != 0
            // If the file system does not support hard links, its first error means that it rejects the name (FAT: a
            // colon, a question mark).
            let hasNoLinks = [EPERM, EOPNOTSUPP, ENOSYS].contains(refusal) && !isLocked
            return hasNoLinks ? error : refusal
        }
        return unlinkat(descriptor, old, 0) == 0 ? 0 : errno
    }
}
