/// A file with bytes before it and behind it, as one body: nothing of the file is held in memory or copied to disk.
public struct FramedFile: Sendable {
    /// What goes before the file.
    public let before: [UInt8]
    /// The file.
    public let source: UploadSource
    /// What goes behind it.
    public let after: [UInt8]

    /// - Parameters:
    ///   - before: goes before the file.
    ///   - source: the file.
    ///   - after: goes behind it.
    public init(before: [UInt8], source: UploadSource, after: [UInt8]) {
        self.before = before
        self.source = source
        self.after = after
    }

    /// Bytes of all three.
    public var length: Int64 { fileEnd + Int64(after.count) }

    private var fileEnd: Int64 { Int64(before.count) + source.identity.size }

    /// Reads what comes next of one of the three.
    ///
    /// - Parameter offset: of the whole.
    /// - Returns: how many bytes; 0 at the end alone.
    /// - Throws: `sourceChanged` before anything behind the file is handed out, where it is not what it was.
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
