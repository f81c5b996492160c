import Glibc

/// The bytes at the end of a part that are fetched again and compared, if nothing else shows that they and the
/// following bytes are of the same version.
struct Overlap: Equatable {
    /// The number of bytes compared at once.
    private(set) var width = 256 * 1024
    /// The maximum distance from the end of the part at which an overlap may start, in bytes.
    private var most = 16 << 20
    /// A short overlap, for files whose size and time on the server are unchanged.
    static let brief = Overlap(width: 8 * 1024, most: 1 << 20)
    /// The shortest width in bytes, for responses that end within the usual width and for shorter parts. A part of at
    /// most this size is fetched again from the start.
    static let narrow = 64 * 1024
    /// The longest period, in bytes, of repetitive content. Other versions are likely to contain the same repetitive
    /// content, so comparing it proves nothing.
    private static let longestPeriod = 4096

    /// Reduces the width to the minimum.
    ///
    /// - Returns: `false` if the width is the minimum already.
    mutating func shrink() -> Bool {
        guard width > Self.narrow else { return false }
        width = Self.narrow
        most = Self.narrow
        return true
    }

    /// Returns the start of an overlap that ends at or before `front` and distinguishes versions. Zeros or a repeated
    /// sector do not.
    ///
    /// - Parameter read: Fills the buffer with the part's bytes from an offset on, and returns their number.
    /// - Returns: 0 if no overlap would distinguish versions. The whole resource must then be fetched.
    func start(
        before front: Int64, read: (UnsafeMutableRawBufferPointer, Int64) throws(TransferError) -> Int
    ) throws(TransferError) -> Int64 {
        // Otherwise, a server that ends each response before the usual width would make every attempt start again.
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
