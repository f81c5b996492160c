/// The metrics in the result of `daemon.status`.
extension DaemonStatus {
    /// The metrics of the daemon since its start, by the names that they have in the text file of `metrics.textfile`,
    /// with their labels, such as `dld_tasks{kind="download",state="active"}`.
    public struct Metrics: Codable, Sendable, Equatable {
        /// The counters and gauges.
        public var values: [String: Double]
        public var histograms: [String: Histogram]

        /// A distribution of times in seconds.
        public struct Histogram: Codable, Sendable, Equatable {
            /// The number of measurements.
            public var count: Int64
            /// The sum of all measurements in seconds.
            public var sum: Double
            public var buckets: [Bucket]

            public init(count: Int64, sum: Double, buckets: [Bucket]) {
                self.count = count
                self.sum = sum
                self.buckets = buckets
            }
        }

        /// A bucket of a histogram. The buckets are cumulative.
        public struct Bucket: Codable, Sendable, Equatable {
            /// The upper bound in seconds.
            public var le: Double
            /// The number of measurements up to the bound.
            public var count: Int64

            public init(le: Double, count: Int64) {
                self.le = le
                self.count = count
            }
        }

        public init(values: [String: Double], histograms: [String: Histogram]) {
            self.values = values
            self.histograms = histograms
        }
    }
}

/// The parameters of `daemon.status`.
public struct DaemonStatusParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// Whether the result has the metrics, for administrators.
    public var metrics: Bool?

    public init(metrics: Bool? = nil) { self.metrics = metrics }
}
