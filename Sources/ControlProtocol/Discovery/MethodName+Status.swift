import TaskModel

// The limits, disks, hosts and metrics in the result of `daemon.status`.
extension MethodName {
    private static let windowFields = [
        ParameterField("days", .text, "the days"),
        ParameterField("from", .text, "its beginning, as HH:MM"),
        ParameterField("to", .text, "its end, as HH:MM"),
        ParameterField("until", JSONSchema.milliseconds.orNull, "the time until which it applies; null for ever"),
    ]

    static let limitFields = [
        ParameterField("downloadRate", JSONSchema.count.orNull, "bytes per second of all downloads; null for no limit"),
        ParameterField("uploadRate", JSONSchema.count.orNull, "bytes per second of all uploads; null for no limit"),
        ParameterField("downloadSource", limitSource, "what sets the rate of downloads"),
        ParameterField("uploadSource", limitSource, "what sets the rate of uploads"),
        ParameterField("window", JSONSchema.result(windowFields).orNull, "the present window of the schedule"),
        ParameterField("activeTasks", .count, "the tasks that run at the same time"),
        ParameterField("activeTasksPerOwner", JSONSchema.count.orNull, "those of one owner; null for no limit"),
        ParameterField("connectionsPerTask", JSONSchema.count.orNull, "the connections of a task; null for automatic"),
        ParameterField("connectionsPerHost", .count, "the connections to a host"),
    ]

    static let diskFields = [
        ParameterField("path", .text, "the directory"),
        ParameterField("free", JSONSchema.count.orNull, "the free bytes"),
        ParameterField("total", JSONSchema.count.orNull, "the size in bytes"),
        ParameterField("minimumFree", .count, "the bytes that downloads leave free"),
    ]

    private static let histogramFields = [
        ParameterField("count", .count, "the number of measurements"),
        ParameterField("sum", .number, "their sum in seconds"),
        ParameterField(
            "buckets",
            .array(
                of: .result([
                    ParameterField("le", .number, "the upper bound in seconds"),
                    ParameterField("count", .count, "the measurements up to the bound"),
                ])), "the cumulative buckets"),
    ]

    static let metricFields = [
        ParameterField("values", .map(of: .number), "counters and gauges by name with labels"),
        ParameterField("histograms", .map(of: .result(histogramFields)), "distributions of times by name"),
    ]

    static let heldHostFields = [
        ParameterField("host", .text, "the scheme, name and port"),
        ParameterField("reason", .text, "why no request is made"),
        ParameterField("owner", JSONSchema.uid.orNull, "the uid whose tasks are held; null if everybody's are"),
        ParameterField("until", JSONSchema.milliseconds.orNull, "the time of the next request"),
    ]
}
