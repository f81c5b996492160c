import ControlProtocol

/// A decision whether a connection may have a stream of events.
///
/// A connection has one stream. The streams of one user leave connections for the user's other commands.
struct SubscriptionPermit: Sendable {
    enum Decision: Sendable {
        case granted
        case refused(RPCError)
    }

    /// Asks for a stream and counts it.
    let acquire: @Sendable () async -> Decision
    /// Takes back a stream that was granted and did not begin.
    let release: @Sendable () -> Void
}
