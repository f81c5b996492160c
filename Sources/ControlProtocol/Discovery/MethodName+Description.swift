import TaskModel

extension MethodName {
    var description: MethodDescription {
        switch self {
        case .taskAdd:
            MethodDescription(
                "Adds tasks: all of them, or none", returns: "ids",
                .result([
                    ParameterField("ids", .array(of: .taskID), "the ids of the tasks, in their order"),
                    ParameterField("found", .array(of: .taskID), "those of the ids that existed under their key"),
                    ParameterField("notes", .array(of: .text), "what of the tasks is passed over"),
                ]), errors: [.refused, .unavailable],
                example: ["tasks": [["url": "https://example.org/a.iso", "batch": "nightly"]]],
                ["ids": [17], "found": [], "notes": []])
        case .taskGet:
            MethodDescription(
                "Returns a task with its history", returns: "task", .shared(.detail),
                errors: [.unknownTask, .unavailable], example: ["id": 17], Self.exampleDetail)
        case .taskList:
            MethodDescription(
                "Returns a page of tasks, the oldest first", returns: "page",
                .result([
                    ParameterField("tasks", .array(of: .shared(.task)), "the tasks"),
                    ParameterField("next", JSONSchema.taskID.orNull, "the value of after for the next page"),
                    ParameterField(
                        "severalOwners", .boolean, "whether the caller may see tasks of more than one user"),
                ]), errors: [.unavailable],
                example: ["filter": ["states": ["completed"]], "limit": 1],
                ["tasks": [Self.exampleTask], "next": 17, "severalOwners": false])
        case .taskCount:
            MethodDescription(
                "Counts tasks", returns: "counts",
                .result([
                    ParameterField("tasks", .count, "the number of tasks"),
                    ParameterField(
                        "owners",
                        .array(
                            of: .result([
                                ParameterField("owner", .uid, "the uid"),
                                ParameterField("tasks", .count, "the number of tasks"),
                            ])), "the owners that have any"),
                ]), errors: [.unavailable],
                example: ["filter": ["batch": "nightly"]], ["tasks": 1, "owners": [["owner": 1000, "tasks": 1]]])
        case .taskPause: change("Pauses tasks and keeps their bytes", example: ["ids": [17]])
        case .taskResume:
            change(
                "Returns paused tasks to what they waited for, and tries those at once that wait for a retry",
                example: ["ids": [17]])
        case .taskCancel:
            change("Ends tasks and keeps their bytes for a retry", example: ["filter": ["batch": "nightly"]])
        case .taskRetry:
            change(
                "Makes tasks ready again that have ended or need a person; a filter without states passes over completed ones",
                example: ["filter": ["states": ["failed"]]])
        case .taskRemove:
            change(
                "Removes tasks and the bytes of unfinished ones", example: ["ids": [17], "deleteFile": true])
        case .taskUpdate:
            MethodDescription(
                "Changes tasks and keeps their bytes", returns: "task or change",
                .either(.shared(.task), .shared(.change)), errors: [.unknownTask, .refused, .unavailable],
                example: ["ids": [17], "changes": ["limit": 1_048_576]], ["changed": 1, "errors": []])
        case .taskMove:
            MethodDescription(
                "Moves a task among those of its owner and priority", returns: "task", .shared(.task),
                errors: [.unknownTask, .refused, .unavailable],
                example: ["id": 17, "first": true], Self.exampleTask)
        case .queueBegin:
            MethodDescription(
                "Begins a set of entries, which queue.commit applies as a whole", returns: "queue",
                .result([ParameterField("queue", .integer, "the number of the set")]),
                errors: [.refused, .unavailable], example: ["batch": "nightly"], ["queue": 3])
        case .queuePut:
            MethodDescription(
                "Adds entries to a set", returns: "entries",
                .result([ParameterField("entries", .count, "the number of entries so far")]),
                errors: [.refused, .unavailable],
                example: ["queue": 3, "entries": ["https://example.org/a.iso"]], ["entries": 1])
        case .queueCommit:
            MethodDescription(
                "Applies a set: its batch then has its entries", returns: "changes",
                .result([
                    ParameterField("added", .count, "the added tasks"),
                    ParameterField("updated", .count, "the changed tasks"),
                    ParameterField("unchanged", .count, "the unchanged tasks"),
                    ParameterField("checked", .count, "the ended tasks whose file is fetched again if it changed"),
                    ParameterField("pruned", .count, "the tasks that no entry names any more"),
                    ParameterField(
                        "ids", .array(of: .array(of: .taskID, most: 2)), "the ids of the added tasks, as [first, last]"),
                    ParameterField(
                        "changes", JSONSchema.array(of: .result(Self.changeFields), most: 1_000).orNull,
                        "the changes of a dry run; null for a commit"),
                ]), errors: [.refused, .unavailable],
                example: ["queue": 3],
                [
                    "added": 1, "updated": 0, "unchanged": 0, "checked": 0, "pruned": 0, "ids": [[17, 17]],
                    "changes": nil,
                ])
        case .queueAbort:
            acknowledged("Drops a set", errors: [.refused, .unavailable], example: ["queue": 3])
        case .queueList:
            MethodDescription(
                "Returns a page of batches, by name", returns: "page",
                .result([
                    ParameterField("batches", .array(of: .result(Self.batchFields)), "the batches"),
                    ParameterField("next", JSONSchema.text.orNull, "the value of after for the next page"),
                ]), errors: [.refused, .unavailable], example: ["limit": 1],
                [
                    "batches": [
                        [
                            "batch": "nightly", "tasks": ["completed": 1], "bytesDone": 1_048_576,
                            "bytesTotal": 1_048_576, "outcome": "completed",
                        ]
                    ], "next": nil,
                ])
        case .sourceReceive:
            acknowledged(
                "Announces open files, which follow with one LF after the response (SCM_RIGHTS)",
                errors: [.refused], example: ["count": 1])
        case .sourceAttach:
            acknowledged(
                "Passes the source of an upload again", errors: [.unknownTask, .refused, .unavailable],
                example: ["id": 17, "descriptor": 0])
        case .daemonStatus:
            MethodDescription(
                "Describes the daemon", returns: "status", .result(Self.statusFields), errors: [.unavailable],
                Self.exampleStatus)
        case .daemonLimits:
            MethodDescription(
                "Returns the rate limits of all tasks together, after a change if any is given", returns: "limits",
                .result([
                    ParameterField("download", JSONSchema.count.orNull, "bytes per second; null is no limit"),
                    ParameterField("upload", JSONSchema.count.orNull, "bytes per second; null is no limit"),
                    ParameterField("downloadSource", Self.limitSource, "where the limit comes from"),
                    ParameterField("uploadSource", Self.limitSource, "where the limit comes from"),
                ]), errors: [.notPermitted, .unavailable],
                example: ["download": 1_048_576],
                [
                    "download": 1_048_576, "upload": nil, "downloadSource": "command",
                    "uploadSource": "configuration",
                ])
        case .daemonReload:
            MethodDescription(
                "Applies the changed configuration, or refuses all of it", returns: "notes",
                .result([
                    ParameterField("ok", .boolean, "always true"),
                    ParameterField("notes", .array(of: .text), "what takes effect only at the next start"),
                ]), errors: [.refused, .notPermitted], ["ok": true, "notes": []])
        case .daemonBackup:
            MethodDescription(
                "Makes a copy of the database, which backup.read returns on the same connection", returns: "backup",
                .result([
                    ParameterField("bytes", .count, "the size of the copy"),
                    ParameterField("tasks", .count, "the number of tasks in it"),
                    ParameterField("lastEvent", .count, "the sequence number of the newest event in it"),
                    ParameterField("journal", .text, "the name of the event journal that the copy begins"),
                ]), errors: [.refused, .notPermitted, .unavailable],
                ["bytes": 262_144, "tasks": 1, "lastEvent": 3, "journal": "91f3c6b2a05d7e48"])
        case .daemonShutdown: acknowledged("Ends the daemon in an orderly way", errors: [.notPermitted])
        case .backupRead:
            MethodDescription(
                "Returns a part of the copy that daemon.backup made on this connection", returns: "part",
                .result([
                    ParameterField(
                        "data", .text, "at most \(BackupReadParameters.partSize) bytes of the copy, in base64"),
                    ParameterField("next", JSONSchema.count.orNull, "the position after this part"),
                ]), errors: [.refused, .notPermitted],
                example: ["offset": 262_140], ["data": "AAAAAA==", "next": nil])
        case .eventsList:
            MethodDescription(
                "Returns a page of the journal, the oldest event first", returns: "page",
                .result([
                    ParameterField("events", .array(of: .shared(.event)), "the events"),
                    ParameterField("next", JSONSchema.count.orNull, "the value of after for the next page"),
                    ParameterField("last", .count, "the sequence number of the newest event"),
                    ParameterField("journal", .text, "the name of the journal"),
                ]), errors: [.unavailable],
                example: ["after": 2],
                ["events": [Self.exampleEvent], "next": nil, "last": 3, "journal": "5f0c9b7de2a81436"])
        case .eventsSubscribe:
            MethodDescription(
                "Sends events as notifications on this connection", returns: "subscription",
                .result([
                    ParameterField("last", .count, "the sequence number of the newest event"),
                    ParameterField("journal", .text, "the name of the journal"),
                ]), errors: [.refused, .unavailable],
                example: ["after": 2, "types": ["completed", "failed"]],
                ["last": 3, "journal": "5f0c9b7de2a81436"])
        case .rpcDiscover:
            MethodDescription(
                "Returns this document", returns: "document", JSONSchema(["type": "object"]),
                ["openrpc": .string(OpenRPCDocument.version)])
        }
    }

    private func change(_ summary: String, example: [String: RPCValue]) -> MethodDescription {
        MethodDescription(
            summary, returns: "change", .shared(.change), errors: [.refused, .unavailable], example: example,
            ["changed": 1, "errors": []])
    }

    private func acknowledged(
        _ summary: String, errors: [SharedError], example: [String: RPCValue] = [:]
    ) -> MethodDescription {
        MethodDescription(
            summary, returns: "acknowledgement", .shared(.acknowledgement), errors: errors, example: example,
            ["ok": true])
    }
}
