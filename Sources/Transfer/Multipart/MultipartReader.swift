/// A part's bytes, one piece after the other.
///
/// It is used by one thread at a time, and may block.
public protocol MultipartReader: Sendable {
    /// Fills the front of `space`, which is never empty.
    ///
    /// - Returns: how many bytes were written there, at most what there is room for; 0 at the end.
    func read(into space: UnsafeMutableRawBufferPointer) throws -> Int
}
