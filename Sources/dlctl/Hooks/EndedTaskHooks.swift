import ControlClient
import Dispatch
import Glibc
import Synchronization
import TaskModel

/// A command that runs for each task that has completed, one task after the other, while others are waited for.
final class EndedTaskHooks: Sendable {
    private let command: String
    private let output: Int32
    private let queue = DispatchQueue(label: "dlctl.exec")
    private let hasFailed = Atomic<Bool>(false)

    /// - Parameter output: the standard output of the command.
    init(command: String, output: Int32 = STDOUT_FILENO) {
        self.command = command
        self.output = output
    }

    /// Runs the command for a task that has completed, after those that were passed before. The path of another one may be
    /// that of an older file.
    func run(_ task: TaskStatus) {
        guard task.state == .completed else { return }
        queue.async { [self] in
            let event = Self.event(of: task)
            let input = HookInput.json(event, task, Output(STDOUT_FILENO))
            let process = HookProcess(
                command: command, variables: HookInput.variables(event), input: Array((input + "\n").utf8),
                output: output)
            guard case .failure(let reason) = process.run() else { return }
            Output.note("dlctl: the command for task \(task.id) failed: \(reason)")
            hasFailed.store(true, ordering: .relaxed)
        }
    }

    /// Waits for the commands.
    ///
    /// - Returns: whether all of them succeeded.
    func finish() -> Bool {
        queue.sync {}
        return !hasFailed.load(ordering: .relaxed)
    }

    /// Returns the event of a task's completion. Its sequence number, which only the daemon knows, is 0.
    private static func event(of task: TaskStatus) -> TaskEvent {
        var event = TaskEvent(
            sequence: 0, at: task.finishedAt ?? Clock.now(), type: .completed, id: task.id, state: task.state,
            reason: task.reason)
        event.kind = task.kind
        (event.batch, event.key, event.owner) = (task.batch, task.key, task.owner)
        (event.url, event.path) = (task.url, task.path)
        (event.bytesDone, event.bytesTotal) = (task.bytesDone, task.bytesTotal)
        return event
    }
}
