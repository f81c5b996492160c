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
