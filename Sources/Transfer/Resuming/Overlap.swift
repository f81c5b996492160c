import Glibc

/// How many bytes at the end of what is here are fetched once more and compared, where nothing else tells that they and
/// what follows them are of one version.
struct Overlap: Equatable {
    /// Bytes of one look.
    private(set) var width = 256 * 1024
    private var most = 16 << 20
    /// A short overlap, for files whose size and time on the server are the same as before.
    static let brief = Overlap(width: 8 * 1024, most: 1 << 20)
    /// Bytes of the shortest look, for answers that end within the usual one and for parts that are shorter. With no more
    /// than that here, all is fetched anew.
    static let narrow = 64 * 1024
    /// Bytes after which what repeats itself says nothing: other versions are likely to have the same.
    private static let longestPeriod = 4096

    /// Fewer bytes from here on.
    ///
    /// - Returns: `false` where they are few already.
    mutating func shrink() -> Bool {
        guard width > Self.narrow else { return false }
        width = Self.narrow
        most = Self.narrow
        return true
    }

    /// Where to begin so that the bytes up to `front` tell one version from another: zeros, or one sector again and
    /// again, do not.
    ///
    /// - Parameter read: fills the space with what is here from an offset on, and says how much that is.
    /// - Returns: 0 where no overlap would tell: the whole is to be fetched then.
    func start(
        before front: Int64, read: (UnsafeMutableRawBufferPointer, Int64) throws(TransferError) -> Int
    ) throws(TransferError) -> Int64 {
        // A server that cuts every answer short of the usual width would otherwise begin anew each time.
        let width = front > Int64(width) ? width : min(width, Self.narrow)
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: width, alignment: 16)
        defer { space.deallocate() }
        var start = front
        while front - start < most {
            start -= Int64(width)
            guard start > 0 else { return 0 }
            guard try read(space, start) == width else { return 0 }
            if !Self.isRepetitive(UnsafeRawBufferPointer(space)) { return start }
        }
        return 0
    }

    private static func isRepetitive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        return (1...longestPeriod).contains { memcmp(base, base + $0, bytes.count - $0) == 0 }
    }
}
