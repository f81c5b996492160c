package import TaskModel

/// A host that receives no new requests at present.
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
    package var cause: Cause
    /// The time of the next request; `nil` if it is unknown.
    package var until: Milliseconds?
}
