import TaskModel
import TaskStore
import Transfer

extension TaskWork {
    /// The host about which the end of a run is evidence.
    enum ResponsibleHost: Equatable {
        /// The task's own host.
        case own
        /// A different host, to which a redirect, a mirror or a list of digests led: scheme, host and port.
        case other(String)
        /// The proxy in front of the host, which accepted no connection: scheme, host and port.
        case proxy(String)
        /// The absence of evidence about any host, because the task uses its owner's proxy.
        case none
    }

    /// Returns the host about which the end of a run is evidence.
    ///
    /// A host to which the task was led is responsible for its own errors. The task's own host is not blamed for them,
    /// and the other host proves nothing about it. A proxy that accepts no connection is responsible for that. What an
    /// owner's proxy says is unknown to other tasks, so any other error or success through it proves nothing about any
    /// host.
    ///
    /// - Parameter error: the error; `nil` where the run succeeded.
    func responsibleHost(for error: TransferError?) -> ResponsibleHost {
        if let error, error.isOfProxy { return error.origin.map { .proxy($0) } ?? .none }
        guard ownProxy == nil else { return .none }
        guard let origin = error?.origin, origin != host else { return .own }
        return .other(origin)
    }

    /// The proxy that the task's owner chose: scheme, host and port; `nil` where the configuration decides.
    var ownProxy: String? {
        (secrets.proxy ?? record.specification.proxy).map { RouteLookup.origin(ofProxy: $0) ?? $0 }
    }
}
