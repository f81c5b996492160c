import ControlClient
import Glibc
import TaskModel

extension Context {
    /// Creates a waiter, which shows bars if the terminal supports them. From then on a signal that ends the program
    /// tells how to wait again, or with `--json` the ids of added tasks.
    ///
    /// - Parameters:
    ///   - isFollowing: whether the client is already subscribed to the events that end these tasks.
    ///   - onEvent: receives every event of the tasks.
    ///   - onEnding: receives each task that has ended.
    func waiter(
        _ target: WaitTarget, client: ControlClient, isFollowing: Bool = false, onEvent: ((TaskEvent) -> Void)? = nil,
        onEnding: ((TaskStatus) -> Void)? = nil
    ) -> TaskWaiter {
        let view = showsBars ? ProgressView(style: Terminal.style(Environment.variables)) : nil
        tellOnInterrupt(target)
        return TaskWaiter(
            target.ids, client: client, isFollowing: isFollowing,
            areKnown: target.isAll || target.batch != nil, wantsDetails: json || showsSummary || onEnding != nil,
            deadline: deadline,
            view: view, onEvent: onEvent, onEnding: onEnding,
            connect: { () throws(ClientError) in try self.connect() }, report: { self.report($0) },
            note: { self.noteOnWait($0) })
    }

    /// Writes a line about tasks that wait or are paused to standard error.
    private func noteOnWait(_ text: String) {
        if json { report(warnings: [text], cookies: nil) } else { note(text) }
    }

    /// Makes Ctrl-C tell how to wait again, or with `--json` which tasks were added.
    func tellOnInterrupt(_ target: WaitTarget) {
        if !json {
            Terminal.setFarewell("\ndlctl: \(farewell(target))\n")
        } else if let lost = output.lossNote {
            Terminal.setFarewell("\n\(lost)\n")
        }
    }

    /// Returns the sentence on the command that waits again.
    func farewell(_ target: WaitTarget) -> String {
        "the tasks go on; to watch them again: \(Escape.visible(target.command(daemon)))"
    }

    /// Whether bars are drawn on standard error.
    var showsBars: Bool { showsSummary && Terminal.movesCursor(Environment.variables) }

    private var showsSummary: Bool { !json && !isQuiet && Terminal.isTerminal(STDERR_FILENO) }

    /// Reports how the tasks ended.
    ///
    /// - Throws: ``ExitStatus/failed`` if a task did not complete.
    func conclude(_ waiter: TaskWaiter) throws {
        output.flush()
        if showsSummary { waiter.summary.lines().forEach(Output.note) }
        guard waiter.conclude(reports: !showsSummary) else { throw ExitStatus.failed }
    }
}
