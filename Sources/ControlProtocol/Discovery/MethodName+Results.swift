import TaskModel

// The longer results, and examples of them.
extension MethodName {
    static let limitSource = JSONSchema.words(["command", "schedule", "configuration"])

    /// The number of tasks by state.
    private static func counts(isComplete: Bool) -> JSONSchema {
        .result(
            TaskState.allCases.map {
                ParameterField($0.rawValue, .count, "the tasks in this state", isRequired: isComplete)
            })
    }

    static let batchFields = [
        ParameterField("batch", .text, "the name"),
        ParameterField("tasks", counts(isComplete: false), "the tasks by state; states without a task are absent"),
        ParameterField("bytesDone", .count, "the bytes of all tasks"),
        ParameterField("bytesTotal", JSONSchema.count.orNull, "the size of all tasks, where every size is known"),
        ParameterField("outcome", JSONSchema.words(of: TaskState.self).orNull, "the outcome once every task has ended"),
    ]

    private static let differenceFields = [
        ParameterField("field", .text, "the name of the option"),
        ParameterField("from", JSONSchema.text.orNull, "the present value; null if there is none, or it is secret"),
        ParameterField("to", JSONSchema.text.orNull, "the new value"),
    ]

    /// The fields of a change that a dry run of `queue.commit` found.
    static let changeFields = [
        ParameterField("action", .words(["add", "update", "prune"]), "what would happen"),
        ParameterField("id", JSONSchema.taskID.orNull, "the existing task"),
        ParameterField("kind", .words(of: TaskKind.self), "the kind"),
        ParameterField("url", .text, "the URL, without its secrets"),
        ParameterField("output", JSONSchema.text.orNull, "the file's name"),
        ParameterField("fields", .array(of: .result(differenceFields)), "what an update changes"),
    ]

    private static let causeFields = [
        ParameterField("reason", .words(of: TaskReason.self), "the reason of the tasks"),
        ParameterField("code", JSONSchema.text.orNull, "the code of their last error"),
        ParameterField("message", JSONSchema.text.orNull, "its message, where all have the same"),
        ParameterField("tasks", .count, "the number of tasks"),
        ParameterField("notBefore", JSONSchema.milliseconds.orNull, "the earliest start of one of them"),
    ]

    private static let waitingFields = [
        ParameterField("counted", .count, "the number of waiting tasks that were looked at"),
        ParameterField("causes", .array(of: .result(causeFields)), "the most frequent causes"),
    ]

    private static let storageFields = [
        ParameterField("limit", JSONSchema.count.orNull, "limits.bytes-per-owner"),
        ParameterField(
            "owners",
            .array(
                of: .result([
                    ParameterField("owner", .uid, "the uid"),
                    ParameterField("bytes", .count, "the bytes in use"),
                ])), "the caller, or for administrators the hundred with the most bytes"),
    ]

    static let statusFields = [
        ParameterField("version", .text, "the version of dld"),
        ParameterField("pid", .integer, "the process id"),
        ParameterField("uptime", .count, "the milliseconds since the start"),
        ParameterField("socket", .text, "the path of the socket, or \(DaemonStatus.inheritedSocket)"),
        ParameterField("stateDirectory", .text, "the directory of the database"),
        ParameterField(
            "configurationFile", JSONSchema.text.orNull, "the configuration file in force; null for the defaults"),
        ParameterField("downloadDirectory", .text, "the directory of downloads that name no other"),
        ParameterField("libcurl", .text, "the version of libcurl"),
        ParameterField("tasks", counts(isComplete: true), "the caller's tasks by state"),
        ParameterField("downloadRate", .count, "bytes per second of all downloads"),
        ParameterField("uploadRate", .count, "bytes per second of all uploads"),
        ParameterField("lastEvent", .count, "the sequence number of the newest event"),
        ParameterField("internalFaults", .count, "stalled transfers that had to be started again; 0 without a defect"),
        ParameterField(
            "schedulePause",
            JSONSchema.result([
                ParameterField("until", JSONSchema.milliseconds.orNull, "the end of the window of the schedule")
            ]).orNull, "the pause of everything by the schedule"),
        ParameterField("waiting", JSONSchema.result(waitingFields).orNull, "why tasks wait"),
        ParameterField("storage", JSONSchema.result(storageFields).orNull, "the disk space that downloads take up"),
        ParameterField(
            "problems", JSONSchema.array(of: .text).orNull, "what an administrator has to correct; empty for others"),
        ParameterField(
            "webhooks", JSONSchema.array(of: .result(webhookFields)).orNull,
            "the receivers of events by HTTP, for administrators; empty for others"),
        ParameterField("limits", JSONSchema.result(limitFields).orNull, "the limits in force"),
        ParameterField("disks", JSONSchema.array(of: .result(diskFields)).orNull, "the disks of downloads"),
        ParameterField("hosts", JSONSchema.array(of: .result(heldHostFields)).orNull, "the hosts on hold"),
        ParameterField(
            "metrics", JSONSchema.result(metricFields).orNull,
            "the metrics; null unless an administrator asks for them"),
    ]

    // MARK: Examples

    private static let exampleFields: [String: RPCValue] = [
        "id": 17, "kind": "download", "state": "completed", "reason": nil, "phase": nil,
        "url": "https://example.org/a.iso", "path": "/home/u/Downloads/a.iso", "name": "a.iso", "owner": 1000,
        "batch": "nightly", "key": nil, "priority": "normal", "bytesDone": 1_048_576, "bytesTotal": 1_048_576,
        "bytesFetched": 1_048_576, "rate": nil, "eta": nil, "idleSince": nil, "reconnectsAt": nil,
        "connections": 0, "attempts": 0, "notBefore": nil,
        "createdAt": 1_795_657_516_000, "startedAt": 1_795_657_516_010, "finishedAt": 1_795_657_517_446,
        "error": nil, "checksum": nil, "checksumURL": nil, "verified": false, "afterTask": nil,
        "fileState": "present",
    ]

    static let exampleTask = RPCValue.object(exampleFields)

    /// The example with the fields of a task that is asked for alone.
    static let exampleDetail = RPCValue.object(
        exampleFields.merging([
            "history": [
                [
                    "startedAt": 1_795_657_516_010, "endedAt": 1_795_657_517_446, "address": "192.0.2.1:443",
                    "bytes": 1_048_576, "name": 3, "connect": 12, "tls": 30, "firstByte": 45, "httpVersion": "1.1",
                    "status": 200, "error": nil, "warning": nil, "note": nil,
                ]
            ], "live": nil, "waitingFor": nil, "insecure": false, "resumable": nil,
        ]) { $1 })

    static let exampleEvent: RPCValue = [
        "sequence": 3, "at": 1_795_657_517_446, "type": "completed", "id": 17, "kind": "download", "batch": "nightly",
        "key": nil, "owner": 1000, "url": "https://example.org/a.iso", "path": "/home/u/Downloads/a.iso",
        "bytesDone": 1_048_576, "bytesTotal": 1_048_576, "state": "completed", "reason": nil, "error": nil,
        "progress": nil, "totals": nil,
    ]

    static let exampleStatus: RPCValue = [
        "version": .string(ProductVersion.version), "pid": 2987, "uptime": 2188,
        "socket": "/run/user/1000/dld/dld.sock", "stateDirectory": "/home/u/.local/state/dld",
        "configurationFile": "/home/u/.config/dld/dld.yaml",
        "downloadDirectory": "/home/u/Downloads", "libcurl": "libcurl/7.88.1",
        "tasks": [
            "queued": 0, "active": 1, "waiting": 0, "paused": 0, "completed": 3, "failed": 0, "cancelled": 0,
        ],
        "downloadRate": 1_005_516, "uploadRate": 0, "lastEvent": 9, "internalFaults": 0, "schedulePause": nil,
        "waiting": ["counted": 0, "causes": []],
        "storage": ["limit": nil, "owners": [["owner": 1000, "bytes": 300_006]]], "problems": [], "webhooks": [],
        "limits": [
            "downloadRate": nil, "uploadRate": nil, "downloadSource": "configuration",
            "uploadSource": "configuration", "window": nil, "activeTasks": 16, "activeTasksPerOwner": nil,
            "connectionsPerTask": nil, "connectionsPerHost": 16,
        ],
        "disks": [["path": "/srv/downloads", "free": 128_849_018_880, "total": nil, "minimumFree": 268_435_456]],
        "hosts": [], "metrics": nil,
    ]
}
