import ControlProtocol
import TaskModel

/// The estimated memory use of a request in bytes, from its decoding until its response is written.
enum RequestCost {
    /// The cost of a quick request.
    static let quick = 16 << 10
    /// The cost of a page of events, as values and as text.
    static let eventPage = 384 << 10
    /// The cost of a part of a backup, as bytes, as base64 and as a line.
    static let backupPart = 4 << 20
    /// The most entries of a list that a quick request may cover.
    private static let quickRows = 16
    private static let row = 4 << 10
    private static let batch = 5 << 20
    /// The cost of determining the order of the queue.
    private static let queueOrder = 8 << 20

    /// Returns the cost of a line that is not short, based on its length alone.
    static func longLine(_ length: Int, isBatch: Bool) -> Int {
        4 * length + (isBatch ? batch : 1 << 20)
    }

    /// Returns the cost of the request in a short line; `nil` if it is quick.
    static func heavy(_ message: RequestProcessor.Message) -> Int? {
        switch message {
        case .single(let request, _): heavy(request)
        case .batch(let requests):
            requests.count <= quickRows && requests.allSatisfy { heavy($0) == nil } ? nil : batch
        }
    }

    private static func heavy(_ request: IncomingRequest) -> Int? {
        guard case .success(let command) = request.command else { return nil }
        switch command {
        case .taskList(let parameters):
            let rows = min(max(1, parameters.limit ?? CommandHandler.pageLimit), CommandHandler.pageLimit)
            if parameters.order == .queue { return queueOrder + rows * row }
            return rows <= quickRows && command.search == .none ? nil : rows * row
        case .taskPause(let selection), .taskResume(let selection), .taskCancel(let selection),
            .taskRetry(let selection), .taskRemove(let selection):
            return changing(selection.ids?.count)
        case .taskUpdate(let parameters):
            switch parameters.selection {
            case .task: return nil
            case .tasks(let ids): return changing(ids.count)
            case .matching: return changing(nil)
            }
        case .eventsList: return eventPage
        case .queueList(let parameters):
            return min(max(1, parameters.limit ?? CommandHandler.pageLimit), CommandHandler.pageLimit) * row
        case .taskCount, .queueCommit, .daemonBackup, .rpcDiscover: return 1 << 20
        case .backupRead: return backupPart
        case .taskAdd, .taskGet, .taskMove, .queueBegin, .queuePut, .queueAbort, .sourceReceive,
            .sourceAttach, .daemonStatus, .daemonLimits, .daemonReload, .daemonShutdown, .eventsSubscribe:
            return nil
        }
    }

    /// - Parameter count: the number of ids; `nil` if a filter selects the tasks.
    private static func changing(_ count: Int?) -> Int? {
        guard let count else { return 2 << 20 }
        return count <= quickRows ? nil : count * 1_024
    }
}

extension Command {
    /// The part of the database that a user makes the daemon read by a filter.
    enum Search {
        /// Only what indexes answer.
        case none
        /// For a response that nobody needs once the client is gone.
        case forResponse
        /// For changes, which are completed without the client.
        case forChanges
    }

    var search: Search {
        switch self {
        case .taskList(let parameters):
            parameters.order == .queue || parameters.filter?.comparesRows == true ? .forResponse : .none
        case .taskCount, .queueList, .eventsList: .forResponse
        case .taskPause(let selection), .taskResume(let selection), .taskCancel(let selection),
            .taskRetry(let selection), .taskRemove(let selection):
            selection.filter?.comparesRows == true ? .forChanges : .none
        case .taskUpdate(let parameters):
            if case .matching(let filter) = parameters.selection, filter.comparesRows { .forChanges } else { .none }
        case .taskAdd, .taskGet, .taskMove, .queueBegin, .queuePut, .queueCommit, .queueAbort, .sourceReceive,
            .sourceAttach, .daemonStatus, .daemonLimits, .daemonReload, .daemonBackup, .daemonShutdown, .backupRead,
            .eventsSubscribe, .rpcDiscover:
            .none
        }
    }
}

extension TaskFilter {
    /// Whether every task must be read to be compared. The other conditions are answered by indexes.
    fileprivate var comparesRows: Bool { search?.isEmpty == false || since != nil || until != nil }
}
