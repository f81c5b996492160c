/// The digests of a file's pieces, all of one length but the last: they tell which bytes of a wrong file are wrong
/// (RFC 5854, section 4.2.14).
public struct PieceDigests: Sendable, Equatable {
    /// Makes each piece's hash.
    public let algorithm: FileDigest.Algorithm
    /// Bytes of a piece, the last one excepted.
    public let length: Int64
    /// One after another, in the order of the file.
    public let hashes: [UInt8]

    /// - Returns: `nil` where the length is none, or the hashes are not whole.
    public init?(algorithm: FileDigest.Algorithm, length: Int64, hashes: [UInt8]) {
        guard length > 0, !hashes.isEmpty, hashes.count.isMultiple(of: algorithm.length) else { return nil }
        self.algorithm = algorithm
        self.length = length
        self.hashes = hashes
    }

    /// How many pieces there are.
    public var count: Int { hashes.count / algorithm.length }

    /// Whether they can be those of a file of `size` bytes.
    func fit(_ size: Int64) -> Bool {
        let (whole, rest) = size.quotientAndRemainder(dividingBy: length)
        return whole + (rest > 0 ? 1 : 0) == Int64(count)
    }

    /// Reads the file once. Blocks.
    ///
    /// - Returns: the bytes of the pieces that are what they should be.
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
