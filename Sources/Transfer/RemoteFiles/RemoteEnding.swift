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
