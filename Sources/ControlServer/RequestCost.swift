import ControlProtocol

/// The estimated memory of a request, from its decoding until its answer is written.
enum RequestCost {
    /// A request that asks for little.
    static let quick = 16 << 10
    /// A page of events, as values and as text.
    static let eventPage = 128 << 10
    /// One request may ask for so much of a list and still be quick.
    private static let quickRows = 16
    private static let row = 4 << 10
    private static let batch = 5 << 20

    /// A line that is not short, by its length alone.
    static func longLine(_ length: Int, isBatch: Bool) -> Int {
        4 * length + (isBatch ? batch : 1 << 20)
    }

    /// What a short line asks for; `nil` for a request that is quick.
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
            let rows = min(max(1, parameters.limit ?? QueueHandler.pageLimit), QueueHandler.pageLimit)
            return rows <= quickRows ? nil : rows * row
        case .taskPause(let selection), .taskResume(let selection), .taskCancel(let selection),
            .taskRetry(let selection), .taskRemove(let selection):
            return changing(selection.ids?.count)
        case .taskUpdate(let parameters):
            switch parameters.selection {
            case .task: return nil
            case .tasks(let ids): return changing(ids.count)
            case .matching: return changing(nil)
            }
        case .taskCount, .queueList, .queueCommit: return 1 << 20
        case .taskAdd, .taskGet, .taskMove, .queueBegin, .queuePut, .queueAbort, .sourceReceive,
            .sourceAttach, .daemonStatus, .daemonLimits, .daemonReload, .daemonShutdown, .eventsSubscribe:
            return nil
        }
    }

    /// - Parameter count: of ids; `nil`: a filter selects the tasks.
    private static func changing(_ count: Int?) -> Int? {
        guard let count else { return 1 << 20 }
        return count <= quickRows ? nil : count * 1_024
    }
}
