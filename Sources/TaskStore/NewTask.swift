import TaskModel

/// A task as it enters the queue.
package struct NewTask: Sendable, Equatable {
    /// What was asked for, its secrets taken out. The digests of pieces are kept apart from the rest.
    package var specification: TaskSpecification
    package var secrets: TaskSecrets
    /// The uid of whoever asks.
    package var owner: UInt32
    /// Scheme, name and port of the URL.
    package var host: String
    package var standing: TaskStanding
    /// Absolute, where it is known already.
    package var path: String?

    package init(
        specification: TaskSpecification, secrets: TaskSecrets, owner: UInt32, host: String, standing: TaskStanding,
        path: String? = nil
    ) {
        self.specification = specification
        self.secrets = secrets
        self.owner = owner
        self.host = host
        self.standing = standing
        self.path = path
    }
}

/// What became of one new task.
package enum AddOutcome: Sendable, Equatable {
    case added(TaskID)
    /// The owner has a task with this key.
    case existing(TaskID)

    package var id: TaskID {
        switch self {
        case .added(let id), .existing(let id): id
        }
    }
}
