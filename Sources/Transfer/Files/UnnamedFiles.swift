import CLinux
import Glibc
import Synchronization

/// The file systems on which a file may be written without a name (O_TMPFILE, open(2)) and get its name when it is
/// complete (linkat(2)).
///
/// That saves the part file's name: one entry of the directory instead of three changes. The new entry and the file's
/// link count must become durable together, see ``NameSync``. This is known of ext2 to ext4 and of tmpfs. Other file
/// systems get part files with names.
enum UnnamedFiles {
    /// The syncs after which the name of such a file survives a power failure.
    enum NameSync: Sendable {
        /// A sync of the directory, since one transaction of the journal contains both changes.
        case directory
        /// A sync of the directory and one of the file, since there is no journal.
        case directoryAndFile
    }

    private static let known = Mutex<[UInt64: NameSync?]>([:])
    /// Whether a file can be named by its descriptor without a privilege.
    private static let haveDescriptorPaths = access("/proc/self/fd", F_OK) == 0

    /// Returns the syncs that a name in the directory needs; `nil` where files need a name from the beginning.
    static func nameSync(in directory: Directory) -> NameSync? {
        let device = directory.device
        if let found = known.withLock({ $0[device] }) { return found }
        let found = haveDescriptorPaths ? determine(directory) : nil
        known.withLock { $0[device] = .some(found) }
        return found
    }

    private static func determine(_ directory: Directory) -> NameSync? {
        if directory.fileSystem.isTemporary { return .directory }
        guard directory.fileSystem.isExt else { return nil }
        var device = [CChar](repeating: 0, count: 32)
        guard linux_device_name(directory.descriptor.raw, &device, device.count) == 0 else { return nil }
        let number = String(decoding: device.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // The last component is the name by which ext4 knows the device.
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/sys/dev/block/\(number)", &target, target.count)
        guard count > 0 else { return nil }
        let path = target[..<count].map { UInt8(bitPattern: $0) }
        let name = String(decoding: path.drop(throughLast: UInt8(ascii: "/")), as: UTF8.self)
        // The number of the journal's thread, or `<none>`.
        guard let journal = ProcessFile.read(path: "/sys/fs/ext4/\(name)/journal_task") else { return nil }
        return journal.first?.isNumber == true ? .directory : .directoryAndFile
    }
}

extension Array where Element == UInt8 {
    /// Returns the elements behind the last `separator`; all of them if there is none.
    fileprivate func drop(throughLast separator: UInt8) -> ArraySlice<UInt8> {
        self[(lastIndex(of: separator).map { $0 + 1 } ?? startIndex)...]
    }
}
