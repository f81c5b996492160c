import TaskModel

/// A JSON array of tasks, written page by page as the tasks arrive.
struct TaskArray {
    private let output: Output
    private var isEmpty = true

    init(_ output: Output) { self.output = output }

    mutating func add(_ tasks: [TaskStatus]) {
        for task in tasks {
            output.text(isEmpty ? "[" : ",\n ")
            output.text(output.encoded(task))
            isEmpty = false
        }
    }

    func end() { output.line(isEmpty ? "[]" : "]") }
}
