import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// The operations of the daemon that a waiter uses.
protocol TaskSource: AnyObject {
    var deadline: Deadline { get set }
    func subscribe(
        after: Int64?, journal: String?, since: Milliseconds?, filter: EventFilter
    ) throws(ClientError) -> EventsSubscribeResult
    func nextEvent(until deadline: Deadline) throws(ClientError) -> TaskEvent?
    func taskIfKnown(_ id: TaskID) throws(ClientError) -> TaskStatus?
    func page(_ parameters: TaskListParameters) throws(ClientError) -> TaskListResult
    func forEachPage(
        filter: TaskFilter?, limit: Int?, after: TaskID?, newest: Int?, _ body: ([TaskStatus]) throws -> Bool
    ) throws
}

extension ControlClient: TaskSource {}
