/// The connections and the bytes of a running download at one moment.
public struct DownloadSnapshot: Sendable {
    /// A connection, and the part of the file that it brings.
    public struct Connection: Sendable, Equatable {
        /// The address and port of the server or of the proxy, as in `192.0.2.1:443` and `[2001:db8::1]:80`; `nil`
        /// until the connection is made.
        public var address: String?
        /// The offset of the first byte of its request.
        public var first: Int64
        /// The offset of the next byte.
        public var next: Int64
        /// The offset behind the last byte that was asked for; `nil` where it is unknown.
        public var end: Int64?
        /// The throughput in bytes per second.
        public var rate: Int64
    }

    /// The connections in the order in which they were opened.
    public var connections: [Connection]
    /// The bytes that are written to the part file.
    public var ranges: ByteRangeSet
    /// The measurements of the exchanges that are under way.
    public var exchanges: [ExchangeMetrics] = []
}

extension DownloadRequest {
    /// Returns the connections and the bytes of the running download. The loop of the download is asked, so the call
    /// costs the transfer nothing otherwise.
    ///
    /// - Returns: `nil` before the download's beginning and after its end, and where the loop does not answer within
    ///   a second.
    public func snapshot() async -> DownloadSnapshot? {
        guard let task = task as? DownloadTask else { return nil }
        return await task.ask { core in (task.run(on: core) as? any DownloadTaskRun)?.snapshot() }
    }
}

extension UploadRequest {
    /// Returns the address and port of the server or of the proxy, as in `192.0.2.1:443`.
    ///
    /// - Returns: `nil` where there is no connection, and where the loop does not answer within
    ///   a second.
    public func peerAddress() async -> String? {
        guard let task = task as? any LoopTask else { return nil }
        return await task.ask { core in (task.run(on: core) as? any PeerRun)?.peerAddress }
    }
}
