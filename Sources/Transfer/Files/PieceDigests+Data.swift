public import FoundationEssentials

extension PieceDigests {
    /// Creates the digests of a file's pieces.
    ///
    /// - Returns: `nil` if `length` is not positive, or `hashes` is not a whole number of digests or is empty.
    @_disfavoredOverload
    public init?(algorithm: FileDigest.Algorithm, length: Int64, hashes: Data) {
        self.init(algorithm: algorithm, length: length, hashes: Array(hashes))
    }
}
