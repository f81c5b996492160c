/// A request body made of a file with bytes before and after it. The file is neither held in memory nor copied to disk.
public struct FramedFile: Sendable {
    /// Bytes sent before the file.
    public let before: [UInt8]
    /// The file.
    public let source: UploadSource
    /// Bytes sent after the file.
    public let after: [UInt8]

    /// - Parameters:
    ///   - before: bytes sent before the file.
    ///   - source: the file.
    ///   - after: bytes sent after the file.
    public init(before: [UInt8], source: UploadSource, after: [UInt8]) {
        self.before = before
        self.source = source
        self.after = after
    }

    /// The length of all three parts together, in bytes.
    public var length: Int64 { fileEnd + Int64(after.count) }

    private var fileEnd: Int64 { Int64(before.count) + source.identity.size }

    /// Reads the next bytes, from one of the three parts.
    ///
    /// - Parameter offset: offset in the whole body.
    /// - Returns: the number of bytes read; 0 only at the end of the body.
    /// - Throws: `sourceChanged` if the file changed, before any byte after the file is returned.
    func read(into space: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TransferError) -> Int {
        let start = Int64(before.count)
        if offset < start { return Self.copy(before, from: offset, to: space) }
        if offset < fileEnd { return try source.read(into: space, at: offset - start) }
        if offset == fileEnd, !source.isUnchanged() { throw .sourceChanged }
        return Self.copy(after, from: offset - fileEnd, to: space)
    }

    private static func copy(_ bytes: [UInt8], from offset: Int64, to space: UnsafeMutableRawBufferPointer) -> Int {
        let rest = bytes.dropFirst(Int(offset)).prefix(space.count)
        space.copyBytes(from: rest)
        return rest.count
    }
}
