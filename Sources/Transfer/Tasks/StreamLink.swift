import Curl

/// The work of a stream task on its connection: the calls of its users and the bytes of the peer, as ``StreamRun`` carries
/// them.
protocol StreamLink: AnyObject, Sendable {
    /// Returns the peer that a request names.
    ///
    /// - Throws: the reason why the request cannot be made.
    func peer(
        of request: TransferRequest, _ configuration: SessionConfiguration
    ) throws(TransferError) -> StreamPeer
    /// Returns the error that the task ends with.
    ///
    /// - Parameter error: the error of the connection; `nil` if both sides were closed.
    func conclusion(_ error: TransferError?) -> TransferError?

    var bytesReceived: Int64 { get }
    var bytesSent: Int64 { get }
    /// Whether a call without a time limit of its own waits for the peer.
    var isAwaited: Bool { get }

    /// Connects the link to the task of a new attempt.
    ///
    /// - Parameters:
    ///   - wakeRun: makes the loop look for work soon.
    ///   - breakOff: ends the task as cancelled.
    func attach(wakeRun: @escaping @Sendable () -> Void, breakOff: @escaping @Sendable () -> Void)
    /// Disconnects the link from a task that has ended.
    func detach()
    /// Called when the loop starts to look for work.
    ///
    /// - Returns: the earliest time to call ``expire(at:)``; `nil` if there is none.
    func beginTurn(_ now: MonotonicTime) -> MonotonicTime?
    func nextWork() -> StreamOperationQueue.Work?
    /// - Returns: an error if the connection cannot be used any more.
    func expire(at now: MonotonicTime) -> TransferError?
    func suspend(_ now: MonotonicTime)
    func resume()
    func connected()
    func received(_ bytes: UnsafeRawBufferPointer)
    func wantsMore() -> Bool
    func peerClosed()
    func accepted(_ count: Int, of offered: Int)
    func hasRoom()
    func sent(_ count: Int)
    func secured(_ number: Int)
    func refused(_ number: Int, _ error: TransferError)
    func captured(_ number: Int)
}

extension StreamChannel: StreamLink {
    func peer(
        of request: TransferRequest, _ configuration: SessionConfiguration
    ) throws(TransferError) -> StreamPeer {
        try StreamAddress.peer(of: request.url)
    }

    func conclusion(_ error: TransferError?) -> TransferError? { error }
}
