/// The value of one series at one time.
struct MetricSample: Sendable, Equatable {
    enum Value: Sendable, Equatable {
        case number(Double)
        case histogram(HistogramValue)
    }

    /// The labels by name, in ascending order.
    let labels: [Label]
    let value: Value

    struct Label: Sendable, Hashable, Comparable {
        let name: String
        let value: String

        static func < (left: Label, right: Label) -> Bool { (left.name, left.value) < (right.name, right.value) }
    }
}

/// The content of a histogram at one time.
struct HistogramValue: Sendable, Equatable {
    struct Bucket: Sendable, Equatable {
        /// The upper bound in seconds.
        let bound: Double
        /// The number of measurements up to the bound.
        let count: Int64
    }

    /// The cumulative buckets, without the one of all measurements.
    let buckets: [Bucket]
    let count: Int64
    /// The sum of the measurements in seconds.
    let sum: Double
}

/// The series of a metric at one time.
struct MetricReading: Sendable {
    let family: MetricFamily
    /// The series, ordered by their labels.
    let samples: [MetricSample]
}
