public import FoundationEssentials

/// The digests of a file's pieces, which all have the same length except the last. They reveal which parts of a corrupt
/// file are wrong (RFC 5854, section 4.2.14).
public struct PieceDigests: Sendable, Equatable {
    /// The hash function of the digests.
    public let algorithm: FileDigest.Algorithm
    /// The length of a piece in bytes, except the last one.
    public let length: Int64
    /// The concatenated digests, in the order of the pieces.
    public let hashes: [UInt8]

    /// Creates the digests of a file's pieces.
    ///
    /// - Returns: `nil` if `length` is not positive, or `hashes` is not a whole number of digests or is empty.
    public init?(algorithm: FileDigest.Algorithm, length: Int64, hashes: [UInt8]) {
        guard length > 0, !hashes.isEmpty, hashes.count.isMultiple(of: algorithm.length) else { return nil }
        self.algorithm = algorithm
        self.length = length
        self.hashes = hashes
    }

    /// The number of pieces.
    public var count: Int { hashes.count / algorithm.length }

    /// Whether the digests can belong to a file of `size` bytes.
    func fit(_ size: Int64) -> Bool {
        let (whole, rest) = size.quotientAndRemainder(dividingBy: length)
        return whole + (rest > 0 ? 1 : 0) == Int64(count)
    }

    /// Reads the file once and verifies its pieces. Blocks.
    ///
    /// - Returns: the byte ranges of the pieces whose digest matches.
    func goodRanges(of file: FileDescriptorOwner, size: Int64) throws(TransferError) -> ByteRangeSet {
        guard fit(size) else { return ByteRangeSet() }
        var good = ByteRangeSet()
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { space.deallocate() }
        for piece in 0..<count {
            let range = Int64(piece) * length..<min(size, Int64(piece + 1) * length)
            var digest = RunningDigest(algorithm)
            let isWhole = try digest.update(file, range, by: space)
            let hash = hashes[piece * algorithm.length..<(piece + 1) * algorithm.length]
            if isWhole, digest.value.elementsEqual(hash) { good.insert(range) }
        }
        return good
    }
}

extension PieceDigests {
    /// Creates the digests of a file's pieces.
    ///
    /// - Returns: `nil` if `length` is not positive, or `hashes` is not a whole number of digests or is empty.
    @_disfavoredOverload
    public init?(algorithm: FileDigest.Algorithm, length: Int64, hashes: Data) {
        self.init(algorithm: algorithm, length: length, hashes: Array(hashes))
    }
}
