import Curl

/// The event loop of a running task.
enum AssignedLoop {
    case shared(SharedLoops.Member)
    /// A loop of ``RemoteLoops``, which is kept as long as the lease.
    case leased(LoopLease)

    var loop: TransferLoop {
        switch self {
        case .shared(let member): member.loop
        case .leased(let lease): lease.loop
        }
    }
}
