package import TaskModel

/// The file of a completed download that was kept, although it was to be removed with its task.
package struct KeptFile: Sendable, Equatable {
    package var path: String
    package var code: ErrorCode
    /// Why it was kept.
    package var reason: String
}
