import TaskModel

// The parameters of each method. Requests are checked against these names, and `rpc.discover` describes them.

extension TaskAddParameters {
    public static let fields = [
        ParameterField(
            "tasks", .array(of: .either(.shared(.specification), .text), most: SpecificationList.maximumCount),
            "the tasks, or their URLs alone; either all are added, or none")
    ]
}

extension TaskGetParameters {
    public static let fields = [ParameterField("id", .taskID, "the task")]
}

extension TaskListParameters {
    public static let fields: [ParameterField] = [
        .optional("filter", .shared(.filter), "selects the tasks; all by default"),
        .optional("limit", .integer(1...Int64.max), "the maximum number of tasks in the page, which has at most 500"),
        .optional("after", .taskID, "the id after which the page starts"),
        .optional("newest", .integer(1...Int64.max), "start with the first of this number of newest tasks"),
        .optional("order", .words(of: TaskListOrder.self), "by id, or the queued tasks in the order of their starts"),
    ]
}

extension TaskCountParameters {
    public static let fields: [ParameterField] = [
        .optional("filter", .shared(.filter), "selects the tasks; all by default")
    ]
}

extension QueueListParameters {
    public static let fields: [ParameterField] = [
        .optional(
            "limit", .integer(1...Int64.max), "the maximum number of batches in the page, which has at most 500"),
        .optional("after", .text, "the name after which the page starts"),
    ]
}

extension TaskSelectionParameters {
    /// The parameters of all methods that act on a selection.
    static let selection: [ParameterField] = [
        .optional("ids", .array(of: .taskID, most: 10_000), "the tasks; give either ids or a filter"),
        .optional("filter", .shared(.filter), "selects the tasks; {} selects all that the caller may see"),
    ]
    static let now = ParameterField.optional(
        "now", .boolean, "whether to start tasks before their start time or dependency; for task.resume only")
    static let deleteFile = ParameterField.optional(
        "deleteFile", .boolean, "whether to delete the finished file too; for task.remove only")
    public static let fields = selection + [deleteFile, now]
}

extension TaskUpdateParameters {
    public static let fields: [ParameterField] = [
        .optional("id", .taskID, "the task; give exactly one of id, ids and filter"),
        .optional("ids", .array(of: .taskID, most: 10_000), "the tasks"),
        .optional("filter", .shared(.filter), "selects the tasks, except completed and cancelled ones"),
        ParameterField("changes", .shared(.changes), "the new values"),
    ]
}

extension TaskMoveParameters {
    public static let fields: [ParameterField] = [
        ParameterField("id", .taskID, "the task"),
        .optional("first", .boolean, "before all others; give exactly one of first, last and before"),
        .optional("last", .boolean, "after all others"),
        .optional("before", .taskID, "before this task"),
    ]
}

extension QueueBeginParameters {
    public static let fields: [ParameterField] = [
        .optional("batch", .text, "the batch to synchronise; without it each entry becomes a new task")
    ]
}

extension QueuePutParameters {
    public static let fields = [
        ParameterField("queue", .integer, "the number that queue.begin returned"),
        ParameterField(
            "entries", .array(of: .either(.shared(.specification), .text), most: maximumEntries),
            "the tasks, or their URLs alone"),
    ]
}

extension QueueCommitParameters {
    public static let fields: [ParameterField] = [
        ParameterField("queue", .integer, "the number that queue.begin returned"),
        .optional("prune", .boolean, "whether to cancel the tasks of the batch that no entry names"),
        .optional("dryRun", .boolean, "whether to only report the changes"),
    ]
}

extension QueueAbortParameters {
    public static let fields = [ParameterField("queue", .integer, "the number that queue.begin returned")]
}

extension SourceReceiveParameters {
    public static let fields = [
        ParameterField("count", .integer(1...Int64(maximum)), "the number of open files that follow")
    ]
}

extension SourceAttachParameters {
    public static let fields = [
        ParameterField("id", .taskID, "the upload"),
        ParameterField("descriptor", .count, "the number of a file of the last source.receive, from 0"),
    ]
}

extension DaemonStatusParameters {
    public static let fields: [ParameterField] = [
        .optional("metrics", .boolean, "whether an administrator gets the metrics as well")
    ]
}

extension DaemonLimitsParameters {
    public static let fields: [ParameterField] = [
        .optional(
            "download", .count.orNull,
            "bytes per second of all downloads; 0 is no limit, null is the value of the configuration"),
        .optional(
            "upload", .count.orNull,
            "bytes per second of all uploads; 0 is no limit, null is the value of the configuration"),
    ]
}

extension BackupReadParameters {
    public static let fields = [ParameterField("offset", .count, "the position of the first byte")]
}

extension EventsSubscribeParameters {
    public static let fields: [ParameterField] = [
        .optional("after", .integer, "the sequence number after which the events start"),
        .optional("journal", .text, "the name of the journal in which that number was"),
        .optional("since", .milliseconds, "the time from which on the events start"),
        .optional(
            "types", .array(of: .words(of: TaskEvent.Kind.self)), "the types of events; all except progress by default"),
        .optional("ids", .array(of: .taskID, most: maximumIDs), "the tasks"),
        .optional("batch", .text, "the batch of the tasks"),
        .optional("owner", .uid, "the uid of the owner of the tasks"),
        .optional("states", .array(of: .words(of: TaskState.self)), "the states at the time of the event"),
        .optional("kind", .words(of: TaskKind.self), "the kind of the tasks"),
    ]
}

extension EventsListParameters {
    public static let fields =
        EventsSubscribeParameters.fields + [
            .optional(
                "limit", .integer(1...Int64.max), "the maximum number of events in the page, which has at most 256")
        ]
}

extension NoParameters {
    public static let fields: [ParameterField] = []
}
