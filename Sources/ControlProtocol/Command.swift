import TaskModel

/// The methods that a client can call, named by noun and verb.
public enum MethodName: String, CaseIterable, Sendable {
    case taskAdd = "task.add"
    case taskGet = "task.get"
    case taskList = "task.list"
    case taskCount = "task.count"
    case taskPause = "task.pause"
    case taskResume = "task.resume"
    case taskCancel = "task.cancel"
    case taskRemove = "task.remove"
    case taskRetry = "task.retry"
    case taskUpdate = "task.update"
    case taskMove = "task.move"
    case queueBegin = "queue.begin"
    case queuePut = "queue.put"
    case queueCommit = "queue.commit"
    case queueAbort = "queue.abort"
    case queueList = "queue.list"
    case sourceReceive = "source.receive"
    case sourceAttach = "source.attach"
    case daemonStatus = "daemon.status"
    case daemonLimits = "daemon.limits"
    case daemonReload = "daemon.reload"
    case daemonBackup = "daemon.backup"
    case daemonShutdown = "daemon.shutdown"
    case backupRead = "backup.read"
    case eventsList = "events.list"
    case eventsSubscribe = "events.subscribe"
    case rpcDiscover = "rpc.discover"
}

/// A method call with its parameters.
public enum Command: Sendable {
    case taskAdd(TaskAddParameters)
    case taskGet(TaskGetParameters)
    case taskList(TaskListParameters)
    case taskCount(TaskCountParameters)
    case taskPause(TaskSelectionParameters)
    case taskResume(TaskSelectionParameters)
    case taskCancel(TaskSelectionParameters)
    case taskRemove(TaskSelectionParameters)
    case taskRetry(TaskSelectionParameters)
    case taskUpdate(TaskUpdateParameters)
    case taskMove(TaskMoveParameters)
    case queueBegin(QueueBeginParameters)
    case queuePut(QueuePutParameters)
    case queueCommit(QueueCommitParameters)
    case queueAbort(QueueAbortParameters)
    case queueList(QueueListParameters)
    case sourceReceive(SourceReceiveParameters)
    case sourceAttach(SourceAttachParameters)
    case daemonStatus(DaemonStatusParameters)
    case daemonLimits(DaemonLimitsParameters)
    case daemonReload
    case daemonBackup
    case daemonShutdown
    case backupRead(BackupReadParameters)
    case eventsList(EventsListParameters)
    case eventsSubscribe(EventsSubscribeParameters)
    case rpcDiscover
}
