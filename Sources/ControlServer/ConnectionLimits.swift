/// What one client, and all of them together, may take.
package struct ConnectionLimits: Sendable {
    /// Connections of one uid.
    package var perUser = 512
    /// Connections of all.
    package var total = 4096
    /// Requests of one uid that are carried out at once: so many quick ones, so many others, and so many pages of events.
    package var atOnce = 4
    /// Bytes that one uid's requests and answers may hold, from the decoding of a request until the client has taken the
    /// answer; past that, its connections are not read.
    package var memoryPerUser = 10 << 20
    /// Bytes that the requests and answers of all may hold.
    package var memory = 24 << 20
    /// The part of ``memory`` that is kept for uids that hold no more than ``littleMemory``.
    package var memoryReserve = 4 << 20
    package var littleMemory = 256 << 10
    /// Requests that are reckoned with no more than this may go beyond ``memoryPerUser``, by ``littleMemory`` in all.
    package var quickMemory = 16 << 10
    /// Bytes of a line that a connection may send at any time; a longer one is received in turn.
    package var shortLine = 2_048
    /// Longer lines of one uid that are received at once.
    package var longLinesPerUser = 3
    /// Longer lines of all.
    package var longLines = 8
    /// Bytes of whole lines that one uid's clients may have sent, and that wait, when they close their end: these are read
    /// whether they may come or not. Past that the connection is closed.
    package var surplusPerUser = 1 << 20
    /// The same bytes, of all users together.
    package var surplus = 4 << 20
    /// The part of ``longLines`` that is kept for uids of which none is being received.
    package var longLineReserve = 3
    /// How long the rest of a line may take to come.
    package var halfLine = Duration.seconds(30)
    /// The time that a client may leave unread what was sent to it, once that is more than the socket takes.
    package var stalled = Duration.seconds(30)
    /// How long answers under way may take to go out when the server shuts down.
    package var grace = Duration.seconds(2)

    package init() {}

    /// The client's own socket, and the pair by which the server speaks with it.
    private static let descriptorsPerConnection = 3
    private static let (leastPerUser, leastTotal) = (8, 12)

    /// Lowers the numbers of connections to what so many descriptors are enough for, so that one user's leave some for
    /// others'.
    package mutating func fit(intoDescriptors count: Int) {
        total = min(total, max(Self.leastTotal, count / Self.descriptorsPerConnection))
        perUser = min(perUser, max(Self.leastPerUser, total / 2))
    }
}
