import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// The operations of the daemon that a waiter uses.
protocol TaskSource: EventSource {
    var deadline: Deadline { get set }
    func taskIfKnown(_ id: TaskID) throws(ClientError) -> TaskStatus?
    func page(_ parameters: TaskListParameters) throws(ClientError) -> TaskListResult
    func forEachPage(
        filter: TaskFilter?, limit: Int?, after: TaskID?, newest: Int?, _ body: ([TaskStatus]) throws -> Bool
    ) throws
}

extension ControlClient: TaskSource {}
