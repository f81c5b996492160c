/// The invariants of a stream's connection.
///
/// 1. *An attempt ends once.* After the action that ends it, no event has an effect.
/// 2. *The first reason counts.* A connection that this machine aborts ends with the reason of the abort.
/// 3. *No byte counts as received under TLS before the peer's certificates are judged.* The handshake is complete for
///    its call only after that, and the connection does not stall meanwhile.
/// 4. *Each report is made once.*
extension StreamStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    var violation: String? {
        guard phase == .resolving || phase == .connecting else { return nil }
        if failure != nil, phase == .resolving { return "an aborted attempt goes on" }
        return reports.betterRoute ? "a better route is reported without a connection" : nil
    }
}
