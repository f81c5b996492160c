import TaskModel

/// The numbers of tasks that ended without completing, by what happened to them.
struct OtherEndings: Equatable {
    private var counts: [String: Int] = [:]
    private(set) var count = 0

    /// The numbers as words that follow others: `, 1 failed, 2 cancelled`.
    var words: String {
        ["failed", "cancelled", "paused", "removed"]
            .map { word in counts[word].map { ", \($0) \(word)" } ?? "" }.joined()
    }

    /// Adds a task by its final state; `nil` for a removed task.
    mutating func add(_ state: TaskState?) {
        counts[state?.rawValue ?? "removed", default: 0] += 1
        count += 1
    }
}
