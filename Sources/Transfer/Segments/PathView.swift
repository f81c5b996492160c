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
