import Glibc

/// Size and free space of the directory's file system.
extension Directory {
    /// The size of the file system in bytes; `nil` if it does not report one, as some user-space file systems and a
    /// tmpfs without a limit.
    public var capacity: Int64? { room?.total }

    /// Returns the bytes that an unprivileged user can still write here; `nil` if the file system does not report them.
    public func freeSpace() -> Int64? { room?.free }

    /// Returns the bytes to keep free here: `wanted`, but at most a twentieth of the file system.
    public func reserve(_ wanted: Int64) -> Int64 { Self.reserve(wanted, of: capacity) }

    /// Returns the bytes to keep free on a file system of `capacity` bytes; none if its size is unknown.
    public static func reserve(_ wanted: Int64, of capacity: Int64?) -> Int64 { min(wanted, (capacity ?? 0) / 20) }

    /// The size of the file system and the bytes that an unprivileged user can still write; `nil` if it does not report
    /// them.
    var room: (total: Int64, free: Int64)? {
        var information = statvfs()
        guard fstatvfs(descriptor.raw, &information) == 0, information.f_blocks > 0 else { return nil }
        let unit = UInt64(information.f_frsize)
        return (Self.bytes(UInt64(information.f_blocks), unit), Self.bytes(UInt64(information.f_bavail), unit))
    }

    /// Returns the number of bytes, limited to `Int64`: a user-space file system may report any numbers.
    private static func bytes(_ blocks: UInt64, _ unit: UInt64) -> Int64 {
        let product = blocks.multipliedReportingOverflow(by: unit)
        return product.overflow ? .max : Int64(clamping: product.partialValue)
    }

    /// The size in bytes up to which a file is not compared with the limit of the process (RLIMIT_FSIZE).
    private static let leastLimit: Int64 = 1 << 20

    /// Validates that a file of `size` bytes can fit here at all, whatever else is removed to make room for it.
    ///
    /// The file system's own limit for one file is checked by ``PartFile/check(canHold:)``.
    ///
    /// - Parameter capacity: the size of the file system in bytes, if known.
    /// - Throws: `tooLarge`.
    func check(canHold size: Int64, of capacity: Int64?) throws(TransferError) {
        if let capacity, size > capacity {
            throw TransferError(
                .tooLarge,
                "the file has \(size) bytes, but the whole file system of \(path) has only \(capacity)")
        }
        // The first write reports a limit that is lower than this.
        guard size > Self.leastLimit else { return }
        var limit = rlimit()
        // If the limit cannot be read, a write beyond it fails later.
        guard getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { return }
        if UInt64(clamping: size) > UInt64(limit.rlim_cur) {
            throw TransferError(
                .tooLarge,
                "the file has \(size) bytes, but this process may not write files of more than \(limit.rlim_cur)")
        }
    }
}
