import TaskModel

/// The reason why a ready task is not running.
enum StartObstacle: Sendable, Equatable {
    /// The daemon is about to end.
    case end
    /// A window of the schedule pauses everything until this time.
    case schedule(until: Milliseconds?)
    /// The owner has as many active tasks as the configuration allows.
    case ownerLimit(Int)
    /// The host is not contacted at present.
    case heldHost(HeldHost)
    /// The host has as many connections as it may have.
    case hostConnections(host: String, limit: Int)
    /// Every slot is taken.
    case slots(Int)
}
