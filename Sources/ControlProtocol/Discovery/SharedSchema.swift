import TaskModel

/// The schemas that several methods share, by their names in the document.
enum SharedSchema: String, CaseIterable {
    case specification = "Specification"
    case changes = "Changes"
    case pieceHashes = "PieceHashes"
    case filter = "Filter"
    case task = "Task"
    case detail = "TaskDetail"
    case attempt = "Attempt"
    case live = "LiveTransfer"
    case failure = "Failure"
    case refusal = "Refusal"
    case change = "ChangeResult"
    case acknowledgement = "Acknowledgement"
    case event = "Event"

    var schema: JSONSchema {
        switch self {
        case .specification: .request(Self.specificationFields)
        case .changes: .request(Self.changesFields)
        case .pieceHashes: .request(Self.pieceHashesFields)
        case .filter: .request(Self.filterFields)
        case .task: .result(Self.taskFields)
        case .detail: .result(Self.taskFields + Self.detailFields)
        case .attempt: .result(Self.attemptFields)
        case .live: .result(Self.liveFields)
        case .failure: .result(Self.failureFields)
        case .refusal: .result(Self.refusalFields)
        case .change: .result(Self.changeFields)
        case .acknowledgement: .result([ParameterField("ok", .boolean, "always true")])
        case .event: .result(Self.eventFields)
        }
    }

    // MARK: Requests

    /// The meaning of each field of a task, by its name in JSON.
    static let summaries: [String: String] = [
        "kind": "download is the default",
        "url": "the source of a download, or the target of an upload",
        "metalink": "whether the URL names a Metalink of one file",
        "mirrors": "other URLs of the same file, best first",
        "output": "the name of the file",
        "directory": "the directory; a relative path is beneath the caller's download directory",
        "checksum": "the expected digest, as ALGORITHM:HEX",
        "checksumURL": "the URL of a list of digests, such as SHA256SUMS",
        "size": "the expected size in bytes",
        "pieceHashes": "the digests of pieces of the file",
        "connections": "the number of connections; the configuration's by default",
        "maxSize": "the maximum size in bytes; a larger file fails",
        "onConflict": "what to do if the name exists; the configuration's policy by default",
        "update": "whether to fetch the file again only if it changed",
        "nameFrom": "where the file's name comes from; header, otherwise a URL by default",
        "noMtime": "whether to keep the time of the download as modification time",
        "shared": "whether to store the file in the directory that all users share",
        "file": "the absolute path of the source of an upload",
        "method": "the request method of an upload; PUT by default, POST for a form",
        "contentType": "the media type of the body, or of the file in the form",
        "form": "fields of a form (multipart/form-data) that contains the file, as NAME=VALUE",
        "fileField": "the name of the file's field in the form",
        "descriptor": "the number of a file of the last source.receive on this connection",
        "headers": "header lines of the requests",
        "user": "the user name for the server",
        "password": "the password for the server",
        "cookies": "cookies in Netscape format",
        "netrc": "logins by server in netrc format",
        "userAgent": "the User-Agent header",
        "referer": "the Referer header",
        "proxy": "the URL of the proxy",
        "caCertificates": "certificates to trust instead of the system's, in PEM",
        "insecure": "whether the certificates of servers are not verified, except of hosts with configured trust",
        "priority": "a ready task with a higher priority starts first; normal is the default",
        "now": "short for the priority now",
        "limit": "the maximum rate in bytes per second",
        "connectTimeout": "the time for connecting, in milliseconds; the configuration's by default",
        "stallTimeout": "the time without a byte after which an attempt ends, in milliseconds",
        "maxAttempts": "the attempts without progress after which the task fails; the configuration's by default",
        "startAt": "the earliest start, in milliseconds since 1970",
        "startAtText": "how startAt was written, where it counts from now",
        "afterTask": "the id of a task that has to complete first",
        "batch": "the name of a group of tasks",
        "key": "the caller's own name for the task; a second task with the same key is not added",
        "paused": "whether to add the task without starting it",
    ]

    private static func summary(_ field: TaskField) -> String { summaries[field.name] ?? field.name }

    static let specificationFields = TaskField.ofJSON.map { field in
        ParameterField(field.name, JSONSchema(field.json), summary(field), isRequired: field.isRequired)
    }

    static let changesFields = TaskField.changeable.map { field in
        let schema = JSONSchema(field.json)
        let mayBeTakenBack = field.change?.takesBack != nil
        return ParameterField.optional(field.name, mayBeTakenBack ? schema.orNull : schema, summary(field))
    }

    static let filterFields = TaskFilter.CodingKeys.allCases.map { key -> ParameterField in
        switch key {
        case .states:
            .optional(key.rawValue, .array(of: .words(of: TaskState.self)), "the states; empty is every state")
        case .batch: .optional(key.rawValue, .text, "the name of a batch")
        case .search: .optional(key.rawValue, .text, "text in the URL or the path; letter case is ignored")
        case .owner: .optional(key.rawValue, .uid, "the uid of the owner")
        case .since:
            .optional(key.rawValue, .milliseconds, "the earliest end of ended tasks, or creation of others")
        case .until: .optional(key.rawValue, .milliseconds, "the end of that period, exclusive")
        }
    }

    private static let pieceHashesFields = PieceHashes.Field.allCases.map { field -> ParameterField in
        switch field {
        case .algorithm: ParameterField(field.rawValue, .words(of: Checksum.Algorithm.self), "the digest's algorithm")
        case .length: ParameterField(field.rawValue, .integer(1...Int64.max), "the length of a piece in bytes")
        case .hashes: ParameterField(field.rawValue, .text, "the digests one after the other, in base64")
        }
    }

    // MARK: Results

    private static let taskFields = [
        ParameterField("id", .taskID, "the id"),
        ParameterField("kind", .words(of: TaskKind.self), "the direction"),
        ParameterField("state", .words(of: TaskState.self), "the state"),
        ParameterField("reason", JSONSchema.words(of: TaskReason.self).orNull, "why it waits or is paused"),
        ParameterField("phase", JSONSchema.words(of: TaskPhase.self).orNull, "what an active task does"),
        ParameterField("url", .text, "the URL, without its secrets"),
        ParameterField("path", JSONSchema.text.orNull, "the file, or where it will be; the source of an upload"),
        ParameterField("name", JSONSchema.text.orNull, "the file's name"),
        ParameterField("owner", .uid, "the uid of the owner"),
        ParameterField("batch", JSONSchema.text.orNull, "the batch"),
        ParameterField("key", JSONSchema.text.orNull, "the caller's own name for the task"),
        ParameterField("priority", .words(of: TaskPriority.self), "the priority"),
        ParameterField("bytesDone", .count, "the bytes on disk or sent"),
        ParameterField("bytesTotal", JSONSchema.count.orNull, "the size"),
        ParameterField("bytesFetched", .count, "all bytes received or sent over all attempts"),
        ParameterField("rate", JSONSchema.count.orNull, "bytes per second"),
        ParameterField("eta", JSONSchema.count.orNull, "the remaining time in seconds"),
        ParameterField("idleSince", JSONSchema.milliseconds.orNull, "since when a running transfer moves no byte"),
        ParameterField("reconnectsAt", JSONSchema.milliseconds.orNull, "when it connects again if no byte comes"),
        ParameterField("connections", .count, "the open connections"),
        ParameterField("attempts", .count, "the attempts so far"),
        ParameterField("notBefore", JSONSchema.milliseconds.orNull, "the earliest start"),
        ParameterField("createdAt", .milliseconds, "when it was added"),
        ParameterField("startedAt", JSONSchema.milliseconds.orNull, "when it first started"),
        ParameterField("finishedAt", JSONSchema.milliseconds.orNull, "when it ended"),
        ParameterField("error", JSONSchema.shared(.failure).orNull, "the last failure"),
        ParameterField("checksum", JSONSchema.text.orNull, "the expected digest"),
        ParameterField("checksumURL", JSONSchema.text.orNull, "the URL of the list of digests"),
        ParameterField("verified", .boolean, "whether the file was compared with its digest"),
        ParameterField("afterTask", JSONSchema.taskID.orNull, "the task that has to complete first"),
        ParameterField(
            "fileState", JSONSchema.words(of: FileState.self).orNull,
            "the finished file's state, where a single task is asked for"),
    ]

    private static let failureFields = [
        ParameterField("code", .text, "a stable error code"),
        ParameterField("message", .text, "a line for people"),
        ParameterField("httpStatus", JSONSchema.integer.orNull, "the status of the response"),
    ]

    private static let refusalFields = [
        ParameterField("id", .taskID, "the task"),
        ParameterField("code", .text, "a stable error code"),
        ParameterField("message", .text, "a line for people"),
    ]

    private static let changeFields = [
        ParameterField("changed", .count, "the number of changed tasks"),
        ParameterField("errors", .array(of: .shared(.refusal)), "the tasks that were not changed, and why"),
        .optional("hosts", .array(of: .text), "the hosts whose hold a resumption ended; absent if there are none"),
    ]

    private static let progressFields = [
        ParameterField("rate", JSONSchema.count.orNull, "bytes per second"),
        ParameterField("eta", JSONSchema.count.orNull, "the remaining time in seconds"),
        ParameterField("connections", .count, "the open connections"),
    ]

    private static let totalsFields = [
        ParameterField("outcome", .words(of: TaskState.self), "completed, failed or cancelled"),
        ParameterField("completed", .count, "the completed tasks"),
        ParameterField("failed", .count, "the failed tasks"),
        ParameterField("cancelled", .count, "the cancelled tasks"),
        ParameterField("bytesDone", .count, "the bytes of all tasks"),
    ]

    static let eventFields = [
        ParameterField("sequence", .count, "the sequence number, which grows and survives restarts"),
        ParameterField("at", .milliseconds, "the time of the event"),
        ParameterField("type", .words(of: TaskEvent.Kind.self), "the type"),
        ParameterField("id", JSONSchema.taskID.orNull, "the task"),
        ParameterField("kind", JSONSchema.words(of: TaskKind.self).orNull, "the kind of the task"),
        ParameterField("batch", JSONSchema.text.orNull, "the batch"),
        ParameterField("key", JSONSchema.text.orNull, "the caller's own name for the task"),
        ParameterField("owner", JSONSchema.uid.orNull, "the uid of the owner"),
        ParameterField("url", JSONSchema.text.orNull, "the URL, without its secrets"),
        ParameterField("path", JSONSchema.text.orNull, "the file"),
        ParameterField("bytesDone", JSONSchema.count.orNull, "the bytes at the time of the event"),
        ParameterField("bytesTotal", JSONSchema.count.orNull, "the size at the time of the event"),
        ParameterField("state", JSONSchema.words(of: TaskState.self).orNull, "the state at the time of the event"),
        ParameterField("reason", JSONSchema.words(of: TaskReason.self).orNull, "the reason at the time of the event"),
        ParameterField("error", JSONSchema.shared(.failure).orNull, "the failure"),
        ParameterField("progress", JSONSchema.result(progressFields).orNull, "the current values; for progress only"),
        ParameterField("totals", JSONSchema.result(totalsFields).orNull, "the result; for batch-finished only"),
    ]
}
