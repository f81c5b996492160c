import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// The operations of the daemon that a waiter uses.
protocol TaskSource: AnyObject {
    var deadline: Deadline { get set }
    func subscribe(after: Int64?, types: [TaskEvent.Kind]?) throws(ClientError) -> Int64
    func nextEvent(until deadline: Deadline) throws(ClientError) -> TaskEvent?
    func taskIfKnown(_ id: TaskID) throws(ClientError) -> TaskStatus?
    func page(_ parameters: TaskListParameters) throws(ClientError) -> TaskListResult
    func forEachPage(
        filter: TaskFilter?, limit: Int?, after: TaskID?, newest: Int?, _ body: ([TaskStatus]) throws -> Bool
    ) throws
}

extension ControlClient: TaskSource {}

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
