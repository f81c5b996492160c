import TaskModel

extension MethodName {
    /// The fields of a webhook in the result of `daemon.status`.
    static let webhookFields = [
        ParameterField("number", .count, "the place in notify, from 1"),
        ParameterField("origin", .text, "the scheme, host and port of its URL"),
        ParameterField("path", .text, "the path of its URL, with at most three characters of each component"),
        ParameterField("types", .array(of: .words(of: TaskEvent.Kind.self)), "the types of events that are sent"),
        ParameterField("batch", JSONSchema.text.orNull, "the batch whose events are sent; null for all"),
        ParameterField("waiting", .count, "the events that wait to be sent"),
        ParameterField("failed", .count, "those of them that were sent and not accepted"),
        ParameterField("delivered", .count, "the events that were accepted since the start"),
        ParameterField("failure", JSONSchema.result(failureFields).orNull, "the last failure, until all are accepted"),
        ParameterField("givenUp", .count, "the number of events that were given up"),
        ParameterField("lastGivenUp", JSONSchema.result(givenUpFields).orNull, "the last of them"),
    ]

    private static let failureFields = [
        ParameterField("since", .milliseconds, "the first failure since the last success"),
        ParameterField("message", .text, "why"),
        ParameterField("nextAttempt", JSONSchema.milliseconds.orNull, "the next attempt; null while one is under way"),
    ]

    private static let givenUpFields = [
        ParameterField("sequence", .count, "the event"),
        ParameterField("at", .milliseconds, "the time at which it was given up"),
        ParameterField("message", .text, "why"),
    ]
}
