import TaskModel
import TaskStore
import Transfer

extension TaskWork {
    /// The host that the ending of a run says something about.
    enum Witness: Equatable {
        /// The task's own.
        case own
        /// Another one, which a redirect, a mirror or a list of checksums led to: scheme, name and port.
        case other(String)
        /// None that others go to: the task has a proxy of its owner's.
        case none
    }

    /// Judges whom an ending speaks for.
    ///
    /// What a task was led to fails for itself: its own host is not blamed, nor may another host speak for it. Of a proxy of
    /// its owner's the others know nothing: what that says of a host, or does not bring, is its own affair.
    ///
    /// - Parameter error: `nil` where the run succeeded.
    func witness(of error: TransferError?) -> Witness {
        guard secrets.proxy == nil, record.specification.proxy == nil else { return .none }
        guard let origin = error?.origin, origin != host else { return .own }
        return .other(origin)
    }
}
