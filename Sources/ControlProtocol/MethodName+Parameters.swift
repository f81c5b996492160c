extension MethodName {
    /// The names of the method's parameters.
    public var parameters: [String] {
        switch self {
        case .taskAdd: TaskAddParameters.keys
        case .taskGet: TaskGetParameters.keys
        case .taskList: TaskListParameters.keys
        case .taskCount: TaskCountParameters.keys
        case .taskPause, .taskResume, .taskCancel, .taskRemove, .taskRetry: TaskSelectionParameters.keys
        case .taskUpdate: TaskUpdateParameters.keys
        case .taskMove: TaskMoveParameters.keys
        case .queueBegin: QueueBeginParameters.keys
        case .queuePut: QueuePutParameters.keys
        case .queueCommit: QueueCommitParameters.keys
        case .queueAbort: QueueAbortParameters.keys
        case .sourceReceive: SourceReceiveParameters.keys
        case .sourceAttach: SourceAttachParameters.keys
        case .daemonLimits: DaemonLimitsParameters.keys
        case .eventsList: EventsListParameters.keys
        case .eventsSubscribe: EventsSubscribeParameters.keys
        case .queueList, .daemonStatus, .daemonReload, .daemonShutdown: NoParameters.keys
        }
    }
}
