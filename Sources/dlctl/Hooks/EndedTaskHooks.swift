import ControlClient
import Dispatch
import Glibc
import Synchronization
import TaskModel

/// A command that runs for each task that has completed, one task after the other, while others are waited for.
final class EndedTaskHooks: Sendable {
    private let command: String
    private let output: Int32
    private let deadline: Deadline
    private let queue = DispatchQueue(label: "dlctl.exec")
    private let hasFailed = Atomic<Bool>(false)

    /// - Parameters:
    ///   - output: the standard output of the command.
    ///   - deadline: the time at which a command is ended, and after which none begins.
    init(command: String, output: Int32 = STDOUT_FILENO, deadline: Deadline = .never) {
        self.command = command
        self.output = output
        self.deadline = deadline
    }

    /// Runs the command for a task that has completed, after those that were passed before. The path of another one may be
    /// that of an older file.
    func run(_ task: TaskStatus) {
        guard task.state == .completed else { return }
        queue.async { [self] in
            guard !deadline.isOver else {
                Output.note("dlctl: the command for task \(task.id) was not run: the time of --timeout is over")
                return hasFailed.store(true, ordering: .relaxed)
            }
            let event = Self.event(of: task)
            let input = HookInput.json(event, task, Output(STDOUT_FILENO))
            let process = HookProcess(
                command: command, variables: HookInput.variables(event), input: Array((input + "\n").utf8),
                output: output, limit: deadline.secondsLeft)
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
