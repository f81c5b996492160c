/// The invariants of a download from a file server.
///
/// 1. *Bytes of two versions never meet.* A step continues the part only where size and time are those of the part, or
///    where bytes are compared, or where a digest shows whether bytes of several sources belong together.
/// 2. *The file is requested anew a limited number of times.*
/// 3. *A file of known size is completed with that size.*
/// 4. *Every written byte is counted,* once.
/// 5. *No file beyond the limit of its size is received.*
extension RemoteDownloadStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    ///
    /// - Parameters:
    ///   - part: the contents of the part file.
    ///   - position: the position behind the last byte that was received.
    func violation(_ part: PartContents, at position: Int64) -> String? {
        if restarts > Self.restartLimit { return "the file is requested too often" }
        if part.count != part.written.count { return "bytes are written and not counted" }
        switch phase {
        case .preparing, .checkingDirectory, .completing, .ended: return nil
        case .requesting(let offset): return offset > part.front ? "a gap would remain before the bytes" : nil
        case .receiving(let facts), .confirming(let facts):
            guard let size = facts.size else { return nil }
            if size > configuration.maximumSize { return "the file is too large" }
            return position > size ? "more bytes are received than the file has" : nil
        }
    }
}
