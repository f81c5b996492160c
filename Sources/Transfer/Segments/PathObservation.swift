/// The state of a download's line at one moment: all input for choosing the number of its connections.
struct PathObservation {
    /// A connection that has received bytes.
    struct Connection {
        /// The connection's number. Later connections have higher numbers.
        var number: Int
        /// Milliseconds since its first response.
        var age: Int64
        /// The number of bytes received so far.
        var received: Int64
    }

    /// The current time in milliseconds on the monotonic clock.
    var now: Int64
    /// The number of bytes received so far by all downloads from the host.
    var received: Int64
    /// The connections of this download that have received bytes.
    var connections: [Connection]
    /// The number of other downloads' connections to the host.
    var others = 0
    /// The number of missing bytes.
    var left: Int64
    /// The response time of a request, in milliseconds.
    var setUp: Int64 = 0
    /// Whether this machine can hardly process the bytes as fast as they arrive.
    var isBusy = false
    /// Whether this machine holds bytes back, because of a rate limit, a slow disk or a suspension.
    var isHeld = false
    /// The capacity that other downloads from the host have measured.
    var capacity: PathCapacity?
    /// Whether no other download from the host is trying a number of connections.
    var mayTry = true
}

/// The state of a path from a download's view.
struct PathView {
    /// The number of bytes received by all downloads from the host.
    var received: Int64
    /// The number of other downloads' connections.
    var others: Int
    var capacity: PathCapacity?
    /// Whether no other download is trying a number of connections.
    var mayTry: Bool
}

/// The capacity of the network path to a host, as downloads from it have measured it.
enum PathCapacity: Equatable {
    /// Each connection has a rate of its own: throughput grows with their number.
    case each
    /// This number of connections saturates the path at this rate, in bytes per second.
    case shared(connections: Int, rate: Double)
}
