/// What one client, and all of them together, may take.
package struct ConnectionLimits: Sendable {
    /// Connections of one uid.
    package var perUser = 512
    /// Connections of all.
    package var total = 4096
    /// How long the rest of a line may take to come.
    package var halfLine = Duration.seconds(30)
    /// How long a client may leave unread what was sent to it, once it is more than the buffers take.
    package var stalled = Duration.seconds(30)
    /// How long answers under way may take to go out when the server shuts down.
    package var grace = Duration.seconds(2)

    package init() {}
}
