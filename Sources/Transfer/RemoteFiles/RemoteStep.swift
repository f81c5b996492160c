/// The operation on a file in one exchange.
struct RemoteStep {
    enum Work {
        /// A download of the bytes from an offset on.
        case fetch(from: Int64)
        /// A query for size and modification time.
        case look
        /// An upload.
        ///
        /// - Parameters:
        ///   - length: the size of the whole file in bytes, if known.
        ///   - offset: the number of bytes already present, after which the upload continues.
        case store(length: Int64?, from: Int64)
        /// A step that consists of commands only.
        case command

        /// Whether bytes of the file are received or sent. libcurl delivers the size and time of an FTP file like a
        /// body.
        var carriesFile: Bool {
            switch self {
            case .fetch, .store: true
            case .look, .command: false
            }
        }
    }

    var work: Work
    /// The path; `nil` if only commands are executed.
    var path: RemotePath?
    var commandsBefore: [[UInt8]] = []
    /// The commands between login and download. libcurl sends neither SIZE for a file whose size it ignores, nor REST
    /// for a later start.
    var commandsBetween: [[UInt8]] {
        guard case .fetch(let offset) = work, let path, path.scheme.isFTP else { return [] }
        return path.sizeQuestion + (offset > 0 ? [Array("REST \(offset)".utf8)] : [])
    }
    /// The commands that follow a successful operation.
    var commandsAfter: [[UInt8]] = []
    /// Whether the step removes what a task has left. It follows the end of the task, and cannot be cancelled.
    var isCleanUp = false
}
