import Glibc

/// How much the directory's file system holds.
extension Directory {
    /// Bytes that the file system has in all; `nil` where it does not say, as some that programs make, and a tmpfs without
    /// a limit.
    public var capacity: Int64? { room?.total }

    /// Bytes that a user without privileges may still write here; `nil` where the file system does not say.
    public func freeSpace() -> Int64? { room?.free }

    /// Bytes to leave free here: `wanted`, but no more than a twentieth of the file system.
    public func reserve(_ wanted: Int64) -> Int64 { min(wanted, (capacity ?? 0) / 20) }

    private var room: (total: Int64, free: Int64)? {
        var information = statvfs()
        guard fstatvfs(descriptor.raw, &information) == 0, information.f_blocks > 0 else { return nil }
        let unit = UInt64(information.f_frsize)
        return (Self.bytes(UInt64(information.f_blocks), unit), Self.bytes(UInt64(information.f_bavail), unit))
    }

    /// A file system that a program makes may claim any numbers.
    private static func bytes(_ blocks: UInt64, _ unit: UInt64) -> Int64 {
        let product = blocks.multipliedReportingOverflow(by: unit)
        return product.overflow ? .max : Int64(clamping: product.partialValue)
    }

    /// Makes sure that a file of `size` bytes can ever lie here, whatever is removed to make room for it.
    ///
    /// What the file system itself allows of one file is for ``PartFile/check(canHold:)`` to ask.
    ///
    /// - Throws: `tooLarge`.
    func check(canHold size: Int64) throws(TransferError) {
        if let capacity, size > capacity {
            throw TransferError(
                .tooLarge,
                "the file has \(size) bytes, and the whole file system of \(path) holds no more than \(capacity)")
        }
        var limit = rlimit()
        // A limit that cannot be read shows when a byte past it is written.
        guard getrlimit(__rlimit_resource_t(1), &limit) == 0 else { return }  // RLIMIT_FSIZE
        if UInt64(clamping: size) > UInt64(limit.rlim_cur) {
            throw TransferError(
                .tooLarge,
                "the file has \(size) bytes, and this process may write no file of more than \(limit.rlim_cur)")
        }
    }
}
