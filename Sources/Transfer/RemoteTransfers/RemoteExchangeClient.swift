import Curl

/// A client of a ``RemoteExchange`` with a file on a file server. Called on the loop's thread.
protocol RemoteExchangeClient: AnyObject {
    /// Receives bytes of the file. Returns `.refused` after setting ``RemoteExchange/failure``. Returns `.paused` after
    /// calling ``RemoteExchange/pause(_:)``; the same bytes are then delivered again.
    ///
    /// - Parameter facts: the server's statements about the file.
    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> BodyVerdict
    /// Writes bytes to be sent to `space`.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict
    /// Prepares to send the bytes again from `offset`.
    func rewind(to offset: Int64) -> Bool
    /// Checks the size that the server reports for the stored file.
    ///
    /// - Returns: whether the size is correct; if not, no further command is sent.
    func judge(storedSize: Int64) -> Bool
    func didEnd(_ ending: RemoteEnding)
}

extension RemoteExchangeClient {
    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> BodyVerdict { .refused }
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict { .filled(0) }
    func rewind(to offset: Int64) -> Bool { true }
    func judge(storedSize: Int64) -> Bool { true }
}

/// The result of a step with a file server.
struct RemoteEnding {
    /// The error; `nil` if libcurl reports success. The client must check whether the data are complete.
    var error: TransferError?
    var facts: RemoteFacts
    /// Whether the server refused a command.
    var isCommandRefused = false
    /// Whether the error occurred before the server accepted a byte: the server refuses the file name.
    var isNameRefused = false
    /// Whether an SFTP step failed with CURLE_SSH before the first byte and the size of the file is known. Reading a
    /// directory fails this way.
    var isOfDirectory = false
}

/// A run that uses a ``RemoteExchange``.
protocol RemoteRun: LoopRun {
    var exchange: RemoteExchange { get }
}

extension RemoteRun {
    func cancel() { exchange.cancel() }
    func suspend() { exchange.pause(.suspended) }
    func goOn() { exchange.resume(.suspended) }
}
