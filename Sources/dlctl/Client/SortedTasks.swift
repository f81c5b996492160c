import TaskModel

/// The first tasks of a list in a given order. The memory is bounded: of the tasks beyond the limit only the first ones
/// are kept, and a list without a limit may not be longer than ``maximum``.
struct SortedTasks {
    /// The order of a list.
    struct Order: Equatable {
        var field: ListField
        var isDescending = false

        /// Parses `FIELD` or `-FIELD`.
        static func parse(_ text: String) throws(Failure) -> Order {
            let isDescending = text.hasPrefix("-")
            let name = isDescending ? String(text.dropFirst()) : text
            return Order(field: try ListField.named(name, option: "--sort"), isDescending: isDescending)
        }

        /// Whether a task comes before another one. Unknown values come last in either direction; equal ones are in
        /// the order of their ids.
        func precedes(_ one: TaskStatus, _ other: TaskStatus) -> Bool {
            switch (field.key(one), field.key(other)) {
            case (let left?, let right?) where left != right: isDescending ? left > right : left < right
            case (_?, nil): true
            case (nil, _?): false
            default: isDescending ? one.id > other.id : one.id < other.id
            }
        }
    }

    /// The maximum number of tasks that are sorted without a limit, and the maximum limit.
    static let maximum = 50_000

    private let order: Order
    private let limit: Int?
    private var kept: [TaskStatus] = []

    init(by order: Order, limit: Int?) throws(Failure) {
        if let limit, limit > Self.maximum {
            throw .usage("--limit: must be at most \(Self.maximum) with --sort", field: "--limit")
        }
        self.order = order
        self.limit = limit
    }

    mutating func add(_ tasks: [TaskStatus]) throws(Failure) {
        kept += tasks
        guard let limit else {
            guard kept.count > Self.maximum else { return }
            throw .usage(
                "--sort: more than \(Self.maximum) tasks match; give --limit N for the first N of the order, or select "
                    + "fewer tasks", field: "--sort")
        }
        // Each task is sorted a bounded number of times.
        if kept.count >= 2 * limit + 1_000 { truncate(limit) }
    }

    /// Returns the tasks in order.
    mutating func finish() -> [TaskStatus] {
        truncate(limit ?? .max)
        return kept
    }

    private mutating func truncate(_ limit: Int) {
        kept.sort(by: order.precedes)
        if kept.count > limit { kept.removeLast(kept.count - limit) }
    }
}
