import TaskModel

// The fields that a task has where it is asked for alone.
extension SharedSchema {
    static let detailFields = [
        ParameterField(
            "history", .array(of: .shared(.attempt), most: TaskAttempt.limit), "the last attempts, the oldest first"),
        ParameterField("live", JSONSchema.shared(.live).orNull, "the transfer of a running task"),
        ParameterField("waitingFor", JSONSchema.text.orNull, "why it does not run, and what happens next"),
        ParameterField("insecure", .boolean, "whether the certificates of servers are not verified"),
        ParameterField(
            "resumable", JSONSchema.boolean.orNull,
            "whether the server can continue the file, as far as its responses tell; null where it is unknown"),
    ]

    private static let step = JSONSchema.count.orNull

    static let attemptFields = [
        ParameterField("startedAt", .milliseconds, "the start"),
        ParameterField("endedAt", JSONSchema.milliseconds.orNull, "the end; null while it is under way"),
        ParameterField("address", JSONSchema.text.orNull, "the address and port of the server or proxy"),
        ParameterField("bytes", .count, "the body bytes received or sent"),
        ParameterField("name", step, "milliseconds from the start until the name was resolved"),
        ParameterField("connect", step, "milliseconds from the start until the connection was made"),
        ParameterField("tls", step, "milliseconds from the start until the TLS handshake was complete"),
        ParameterField("firstByte", step, "milliseconds from the start until the first byte of the response"),
        ParameterField("httpVersion", JSONSchema.words(["1.0", "1.1", "2", "3"]).orNull, "the version of HTTP"),
        ParameterField("status", JSONSchema.integer.orNull, "the status of the response"),
        ParameterField(
            "error", JSONSchema.shared(.failure).orNull, "the failure; null if it succeeded, was stopped or goes on"),
        ParameterField("warning", JSONSchema.text.orNull, "what is suspicious about the file"),
        ParameterField(
            "note", JSONSchema.text.orNull,
            "why it went on over another connection or in another version of HTTP; null if it did not"),
    ]

    private static let connectionFields = [
        ParameterField("address", JSONSchema.text.orNull, "the address and port of the server or proxy"),
        ParameterField("first", .count, "the offset of the first byte of its request"),
        ParameterField("next", .count, "the offset of the next byte"),
        ParameterField("end", JSONSchema.count.orNull, "the offset behind the last byte that was asked for"),
        ParameterField("rate", .count, "bytes per second"),
    ]

    private static let segmentFields = [
        ParameterField("first", .count, "the offset of the first byte"),
        ParameterField("end", .count, "the offset behind the last byte"),
    ]

    private static let rateLimitFields = [
        ParameterField("scope", .words(of: LiveRateLimit.Scope.self), "the origin of the limit"),
        ParameterField("rate", .count, "bytes per second"),
    ]

    static let liveFields = [
        ParameterField("connections", .array(of: .result(connectionFields)), "the connections"),
        ParameterField(
            "segments", .array(of: .result(segmentFields), most: LiveTransfer.segmentLimit),
            "the parts of the file that are there"),
        ParameterField("rateLimits", .array(of: .result(rateLimitFields)), "the rate limits that apply"),
    ]
}
