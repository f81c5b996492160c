/// A metric with all of its series, which differ in their labels.
struct MetricFamily: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    let name: String
    let kind: Kind
    /// The explanation, one line.
    let help: String
    /// The upper bounds of a histogram's buckets in seconds, in ascending order.
    let bounds: [Double]

    init(_ name: String, _ kind: Kind, _ help: String, bounds: [Double] = []) {
        self.name = name
        self.kind = kind
        self.help = help
        self.bounds = bounds
    }
}

extension MetricFamily {
    /// The bounds for times of a disk or a loop.
    private static let short = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    /// The bounds for times of a network.
    private static let medium = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
    /// The bounds for waits in the queue, up to a week.
    private static let long = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400, 604_800]

    /// All metrics of the daemon, in the order in which they are written.
    static let all = [
        MetricFamily("dld_up", .gauge, "Whether the daemon runs: 0 after it was stopped."),
        MetricFamily("dld_build_info", .gauge, "The versions of dld and libcurl; the value is always 1."),
        MetricFamily("dld_start_time_seconds", .gauge, "The start of the daemon in seconds since 1970."),
        MetricFamily("dld_metrics_time_seconds", .gauge, "The time of these values in seconds since 1970."),
        MetricFamily("dld_tasks", .gauge, "The number of tasks by kind and state."),
        MetricFamily("dld_downloaded_bytes_total", .counter, "The body bytes that were received."),
        MetricFamily("dld_uploaded_bytes_total", .counter, "The body bytes that were sent."),
        MetricFamily("dld_download_rate_bytes_per_second", .gauge, "The throughput of all downloads together."),
        MetricFamily("dld_upload_rate_bytes_per_second", .gauge, "The throughput of all uploads together."),
        MetricFamily("dld_attempts_total", .counter, "The attempts that ended, by kind of task."),
        MetricFamily("dld_failures_total", .counter, "The attempts that failed, by class of error."),
        MetricFamily(
            "dld_queue_wait_seconds", .histogram, "The time from when a task was added to its first start.",
            bounds: long),
        MetricFamily(
            "dld_time_to_first_byte_seconds", .histogram,
            "The time from the start of an attempt to the first byte of the response.", bounds: medium),
        MetricFamily(
            "dld_commit_seconds", .histogram, "The time of a commit to the database, with its sync.", bounds: short),
        MetricFamily(
            "dld_sync_seconds", .histogram, "The time of a sync of received bytes to disk.", bounds: short),
        MetricFamily(
            "dld_loop_lag_seconds", .histogram,
            "The time until the event loops carry out work that is posted to them.", bounds: short),
        MetricFamily("dld_hosts_on_hold", .gauge, "The number of hosts that receive no requests at present."),
        MetricFamily("dld_wal_bytes", .gauge, "The size of the database's write-ahead log."),
        MetricFamily("dld_connections", .gauge, "The number of clients that are connected to the control socket."),
        MetricFamily(
            "dld_subscribers_dropped_total", .counter,
            "The subscribers that were disconnected because they did not read their events."),
    ]
}
