/// A reader of a part's bytes, in order.
///
/// One thread at a time uses it. It may block.
public protocol MultipartReader: Sendable {
    /// Writes the next bytes to the start of `space`, which is never empty.
    ///
    /// - Returns: the number of bytes written, at most the size of `space`; 0 at the end.
    func read(into space: UnsafeMutableRawBufferPointer) throws -> Int
}
