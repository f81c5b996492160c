package import TaskModel

/// A host that receives no new requests at present, or none of one owner's tasks.
package struct HeldHost: Sendable, Equatable {
    package enum Cause: String, Sendable {
        /// The host asked for a delay.
        case retryAfter = "retry-after"
        /// Requests failed one after the other.
        case failures
        /// A request tries whether the host works again.
        case probe
        /// This machine has no route to the host.
        case noRoute = "no-route"
    }

    /// See ``TaskWork/hostFingerprint``.
    var fingerprint: Int64
    /// The scheme, name and port.
    package var host: String
    /// The uid of the owner whose tasks are held; `nil` if everybody's are.
    package var owner: UInt32?
    package var cause: Cause
    /// The time of the next request; `nil` if it is unknown.
    package var until: Milliseconds?
    /// The hosts that are held because this one is the proxy in front of them.
    var behind: Set<Int64> = []

    /// Returns whether tasks of an owner at a host are held.
    func holds(_ fingerprint: Int64, of owner: UInt32) -> Bool {
        (self.owner ?? owner) == owner && (self.fingerprint == fingerprint || behind.contains(fingerprint))
    }
}
