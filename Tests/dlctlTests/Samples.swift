import TaskModel

@testable import dlctl

/// Returns a task status as the daemon would report it.
func sampleTask(
    _ id: Int64 = 7, _ state: TaskState = .active, reason: TaskReason? = nil, name: String = "a.iso",
    done: Int64 = 0, of total: Int64? = nil, error: TaskFailure? = nil
) -> TaskStatus {
    var task = TaskStatus(
        TaskRecord(
            id: TaskID(id), specification: TaskSpecification(url: "https://example.org/" + name), owner: 1000,
            lifecycle: TaskLifecycle(), createdAt: 0))
    task.state = state
    task.reason = reason
    task.name = name
    task.bytesDone = done
    task.bytesFetched = done
    task.bytesTotal = total
    task.error = error
    return task
}
