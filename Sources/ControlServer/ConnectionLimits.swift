/// The limits on the resources that one client, and all clients together, may use.
package struct ConnectionLimits: Sendable {
    /// The most connections of one uid.
    package var perUser = 512
    /// The most connections of all users.
    package var total = 4096
    /// The most requests of one uid that are carried out at once. It applies separately to quick requests, to other
    /// requests and to pages of events.
    package var atOnce = 4
    /// The most bytes that one uid's requests and responses may hold, from the decoding of a request until the response
    /// is written to the client's socket. Beyond that, the uid's connections are not read.
    package var memoryPerUser = 10 << 20
    /// The most bytes that the requests and responses of all users may hold.
    package var memory = 24 << 20
    /// The part of ``memory`` reserved for uids that hold no more than ``littleMemory``.
    package var memoryReserve = 4 << 20
    package var littleMemory = 256 << 10
    /// The estimated cost, in bytes, up to which a request may exceed ``memoryPerUser``, by ``littleMemory`` in total.
    package var quickMemory = 16 << 10
    /// The most bytes of a line that a connection may send at any time. A longer line is received in turn.
    package var shortLine = 2_048
    /// The most longer lines of one uid that are received at once.
    package var longLinesPerUser = 3
    /// The most longer lines of all users that are received at once.
    package var longLines = 8
    /// The most bytes of complete, waiting lines that one uid's clients may have sent when they close their end. NIO
    /// reads these bytes whether the server permits it or not. Beyond that, the connection is closed.
    package var surplusPerUser = 1 << 20
    /// The same limit for all users together.
    package var surplus = 4 << 20
    /// The part of ``longLines`` reserved for uids that have no long line in progress.
    package var longLineReserve = 3
    /// The time within which the rest of a line must arrive.
    package var halfLine = Duration.seconds(30)
    /// The time for which a client may leave sent data unread, once there is more of it than the socket holds.
    package var stalled = Duration.seconds(30)
    /// The time that running requests and their responses get to complete when the server shuts down.
    package var grace = Duration.seconds(2)
    /// The time that an idle connection has for its next request when the server shuts down, from when it became idle.
    package var requestTime = Duration.milliseconds(250)

    package init() {}

    /// The file descriptors per connection: the client's own socket, and the pair that links it to the server.
    private static let descriptorsPerConnection = 3
    private static let (leastPerUser, leastTotal) = (3, 5)

    /// The most subscriptions to events of one uid. The connections beyond it serve its other commands.
    package var subscriptionsPerUser: Int { max(1, perUser - max(1, perUser / 8)) }

    /// Lowers the limits on connections to fit `count` file descriptors, so that one user's connections leave some for
    /// others.
    package mutating func fit(intoDescriptors count: Int) {
        total = min(total, max(Self.leastTotal, count / Self.descriptorsPerConnection))
        perUser = min(perUser, max(Self.leastPerUser, total / 2))
    }
}
