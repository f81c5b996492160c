/// A specification with its rarely used values beside it, so that any field can be changed by a key path of stored
/// properties.
package struct UnpackedTask: Sendable, Equatable {
    /// The specification. Its own rarely used values are those before any change.
    package var task: TaskSpecification
    package var details: DetailValues

    package init(_ task: TaskSpecification) {
        self.task = task
        details = task.details?.values ?? .default
    }

    /// The specification with all changes.
    package var packed: TaskSpecification {
        var packed = task
        packed.details = Details.holding(details, sharing: task.details)
        return packed
    }
}
