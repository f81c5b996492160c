/// The objects that the connections of one server share. Belongs to the event loop.
struct ServerParts {
    let handler: any ControlHandler
    let table: ConnectionTable
    let workload: Workload
    let heavyThreads: HeavyThreads
    /// The thread of requests that read much of the database.
    let searchThreads: HeavyThreads
    let limits: ConnectionLimits
    let metrics: ServerMetrics
}
