/// The decoding of a complete part file whose bytes were stored as they came.
extension PartFile {
    private static let pieceLength = 256 << 10

    /// Returns the length in bytes of the decoded contents if they have the digest; `nil` if they have another one. Blocks.
    ///
    /// - Parameters:
    ///   - size: the number of bytes of the part.
    ///   - limit: the largest permitted number of decoded bytes.
    /// - Throws: `truncated` if the bytes cannot be decoded, `tooLarge` past the limit.
    func lengthOfDecoded(
        _ codings: some Collection<BodyDecoder.Coding>, _ size: Int64, _ digest: FileDigest, limit: Int64
    ) throws(TransferError) -> Int64? {
        var (found, length) = (RunningDigest(digest.algorithm), Int64(0))
        try decode(codings, size) { (piece: UnsafeRawBufferPointer) throws(TransferError) in
            length += Int64(piece.count)
            guard length <= limit else {
                throw TransferError(.tooLarge, "the encoded body expands too much when it is decoded")
            }
            found.update(piece)
        }
        return FileDigest(algorithm: digest.algorithm, bytes: found.value).hex == digest.hex ? length : nil
    }

    /// Creates a part file of the decoded contents, in the place of this one. Blocks.
    ///
    /// - Parameter owner: the name of the task, as for ``make(in:name:owner:)``.
    func decoded(
        _ codings: some Collection<BodyDecoder.Coding>, _ size: Int64, owner: String
    ) throws(TransferError) -> PartFile {
        let decoded = try PartFile.make(in: directory, name: name, owner: owner)
        let run = decoded.beginRun(at: 0)
        try decode(codings, size) { (piece: UnsafeRawBufferPointer) throws(TransferError) in
            try decoded.write(piece, to: run)
        }
        decoded.end(run)
        return decoded
    }

    private func decode(
        _ codings: some Collection<BodyDecoder.Coding>, _ size: Int64,
        _ take: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        guard let decoder = BodyDecoder(codings) else { return }
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceLength, alignment: 4096)
        defer { space.deallocate() }
        var offset: Int64 = 0
        while offset < size {
            let wanted = Int(min(Int64(space.count), size - offset))
            let read = try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: space[..<wanted]), at: offset)
            guard read > 0 else { throw TransferError(.remoteChanged, "another process truncated the part file") }
            try decoder.decode(UnsafeRawBufferPointer(rebasing: space[..<read]), take)
            offset += Int64(read)
        }
        if let error = decoder.failureAtEnd() { throw error }
    }
}
