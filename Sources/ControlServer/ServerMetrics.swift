import CoreMetrics

/// The metrics of the control server, created once for each server.
struct ServerMetrics: Sendable {
    /// The number of connected clients.
    let connections = Meter(label: "dld_connections")
    /// The subscribers whose connection was closed because they did not read their events.
    let subscribersDropped = Counter(label: "dld_subscribers_dropped_total")
}
