import Curl

/// Who works with a file on a file server through a ``RemoteExchange``. Called on the loop's thread.
protocol RemoteExchangeClient: AnyObject {
    /// Bytes of the file. `.refused` after ``RemoteExchange/failure`` was set; `.paused` after
    /// ``RemoteExchange/pause(_:)``, and then the same bytes come again.
    ///
    /// - Parameter facts: what the server says of the file.
    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> BodyVerdict
    /// Puts bytes to send into `space`.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict
    /// The bytes are to be sent again from `offset`.
    func rewind(to offset: Int64) -> Bool
    /// The server says that it has so many bytes of what was sent.
    ///
    /// - Returns: whether that is right; if not, no command follows.
    func judge(storedSize: Int64) -> Bool
    func didEnd(_ ending: RemoteEnding)
}

extension RemoteExchangeClient {
    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> BodyVerdict { .refused }
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict { .filled(0) }
    func rewind(to offset: Int64) -> Bool { true }
    func judge(storedSize: Int64) -> Bool { true }
}

/// How a step with a file server ended.
struct RemoteEnding {
    /// `nil` where libcurl is content: whether all is there is for the client to judge.
    var error: TransferError?
    var facts: RemoteFacts
    /// The error is one of a command.
    var isCommandRefused = false
    /// The error came before the server took a byte: it does not want the name.
    var isNameRefused = false
    /// The error came before the first byte of a file over SFTP, and has no other name than SSH's: a directory fails so.
    var isOfDirectory = false
}

/// A run that works through a ``RemoteExchange``.
protocol RemoteRun: LoopRun {
    var exchange: RemoteExchange { get }
}

extension RemoteRun {
    func cancel() { exchange.cancel() }
    func suspend() { exchange.pause(.suspended) }
    func goOn() { exchange.resume(.suspended) }
}
