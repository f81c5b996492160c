import CLinux

/// The type of a file system (statfs(2)).
struct FileSystemType: Sendable, Equatable {
    /// The kernel's number of the type; 0 if it cannot be determined.
    let number: Int

    /// Whether a file's modification time changes with every write and only then. Remote file systems, and those
    /// implemented by programs, may use other clocks and rules.
    let reportsChanges: Bool

    /// Whether writes that bypass the page cache are faster, and no exception.
    let supportsUncachedWrites: Bool

    init(of descriptor: Int32) {
        number = linux_file_system_type(descriptor)
        // ext2 to ext4, XFS, Btrfs, tmpfs, F2FS.
        reportsChanges = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010].contains(number)
        // ext2 to ext4, XFS.
        supportsUncachedWrites = [0xEF53, 0x5846_5342].contains(number)
    }

    /// Whether the file system is remote or implemented by a program, and can therefore block its callers for ever.
    var isOfAnotherMachine: Bool {
        // NFS, SMB and CIFS, FUSE, Ceph, 9P, AFS, Lustre.
        [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x00C3_6400, 0x0102_1997, 0x5346_414F, 0x0BD0_0BD0]
            .contains(number)
    }
}
