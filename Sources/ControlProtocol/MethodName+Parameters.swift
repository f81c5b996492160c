extension MethodName {
    /// The method's parameters.
    public var parameters: [ParameterField] {
        switch self {
        case .taskAdd: TaskAddParameters.fields
        case .taskGet: TaskGetParameters.fields
        case .taskList: TaskListParameters.fields
        case .taskCount: TaskCountParameters.fields
        case .taskPause, .taskCancel, .taskRetry: TaskSelectionParameters.selection
        case .taskResume: TaskSelectionParameters.selection + [TaskSelectionParameters.now]
        case .taskRemove: TaskSelectionParameters.selection + [TaskSelectionParameters.deleteFile]
        case .taskUpdate: TaskUpdateParameters.fields
        case .taskMove: TaskMoveParameters.fields
        case .queueBegin: QueueBeginParameters.fields
        case .queuePut: QueuePutParameters.fields
        case .queueCommit: QueueCommitParameters.fields
        case .queueAbort: QueueAbortParameters.fields
        case .sourceReceive: SourceReceiveParameters.fields
        case .sourceAttach: SourceAttachParameters.fields
        case .daemonStatus: DaemonStatusParameters.fields
        case .daemonLimits: DaemonLimitsParameters.fields
        case .backupRead: BackupReadParameters.fields
        case .eventsList: EventsListParameters.fields
        case .eventsSubscribe: EventsSubscribeParameters.fields
        case .queueList: QueueListParameters.fields
        case .daemonReload, .daemonBackup, .daemonShutdown, .rpcDiscover:
            NoParameters.fields
        }
    }
}
