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

/// The result of a step with a file server.
struct RemoteEnding: Equatable {
    /// The error; `nil` if libcurl reports success. The client must check whether the data are complete.
    var error: TransferError?
    var facts = RemoteFacts()
    /// Whether this machine aborted the step: the task was cancelled, or the client refused bytes or the stored size.
    var isLocal = false
    /// Whether the server refused a command.
    var isCommandRefused = false
    /// Whether the error occurred before the server accepted a byte: the server refuses the file name.
    var isNameRefused = false
    /// Whether an SFTP step failed with CURLE_SSH before the first byte and the size of the file is known. Reading a
    /// directory fails this way.
    var isOfDirectory = false
    /// Whether bytes of the file were received or sent.
    var bodyBegun = false
    /// Whether the step was paused at any time, other than for a rate limit.
    var hasPaused = false
    /// The time since the step's last connection was begun, in milliseconds.
    var duration: Int64 = 0
}
