import Curl

/// A client of a ``RemoteExchange`` with a file on a file server. Called on the loop's thread.
protocol RemoteExchangeClient: AnyObject {
    /// Receives bytes of the file.
    ///
    /// - Parameter facts: the server's statements about the file.
    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> RemoteBodyVerdict
    /// Writes bytes to be sent to `space`.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> RemoteFillVerdict
    /// Prepares to send the bytes again from `offset`.
    func rewind(to offset: Int64) -> Bool
    /// Checks the size that the server reports for the stored file.
    ///
    /// - Returns: the error if the size is wrong; no further command is sent then.
    func evaluate(storedSize: Int64) -> TransferError?
    func didEnd(_ ending: RemoteEnding)
}

extension RemoteExchangeClient {
    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> RemoteBodyVerdict {
        .refused(TransferError(.internal, "bytes come in a step without a body"))
    }
    func fill(_ space: UnsafeMutableRawBufferPointer) -> RemoteFillVerdict { .filled(0) }
    func rewind(to offset: Int64) -> Bool { true }
    func evaluate(storedSize: Int64) -> TransferError? { nil }
}

/// A run that uses a ``RemoteExchange``.
protocol RemoteRun: PeerRun {
    var exchange: RemoteExchange { get }
}

extension RemoteRun {
    func cancel() { exchange.cancel() }
    func suspend() { exchange.suspend() }
    var peerAddress: String? { exchange.peerAddress }
    func resume() { exchange.resume(after: .suspended) }
}
