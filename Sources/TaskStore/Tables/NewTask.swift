package import TaskModel

/// A task to be added to the queue.
package struct NewTask: Sendable, Equatable {
    /// The specification without its secrets. The digests of pieces are stored separately.
    package var specification: TaskSpecification
    package var secrets: TaskSecrets
    /// The uid of the owner.
    package var owner: UInt32
    /// The scheme, name and port of the URL.
    package var host: String
    package var lifecycle: TaskLifecycle
    /// The absolute path, if it is already known.
    package var path: String?

    package init(
        specification: TaskSpecification, secrets: TaskSecrets, owner: UInt32, host: String, lifecycle: TaskLifecycle,
        path: String? = nil
    ) {
        self.specification = specification
        self.secrets = secrets
        self.owner = owner
        self.host = host
        self.lifecycle = lifecycle
        self.path = path
    }
}

/// The outcome of adding one task.
package enum AddOutcome: Sendable, Equatable {
    case added(TaskID)
    /// The owner already has a task with this key.
    case existing(TaskID)

    package var id: TaskID {
        switch self {
        case .added(let id), .existing(let id): id
        }
    }
}
