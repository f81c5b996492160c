import ControlClient
import Glibc
import TaskModel

extension Context {
    /// Creates a waiter, which shows bars if the terminal supports them.
    ///
    /// - Parameter isFollowing: whether the client is already subscribed to the events that end these tasks.
    func waiter(
        _ ids: [TaskID], client: ControlClient, isFollowing: Bool = false, deadline: Deadline = .never
    ) -> TaskWaiter {
        let environment = Environment.variables
        let showsBars = !json && Terminal.isTerminal(STDERR_FILENO) && Terminal.movesCursor(environment)
        let view =
            showsBars
            ? ProgressView(style: Terminal.style(environment)) : nil
        return TaskWaiter(
            ids, client: client, isFollowing: isFollowing, wantsDetails: json || showsBars, deadline: deadline,
            view: view,
            connect: { () throws(ClientError) in try self.connect() }, report: { self.report($0) })
    }
}
