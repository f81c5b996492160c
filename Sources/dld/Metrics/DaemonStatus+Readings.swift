import ControlProtocol

extension DaemonStatus.Metrics {
    /// Creates the metrics of `daemon.status`.
    init(_ readings: [MetricReading]) {
        self.init(values: [:], histograms: [:])
        for reading in readings {
            for sample in reading.samples {
                let name = Exposition.series(reading.family.name, sample.labels)
                switch sample.value {
                case .number(let number): values[name] = number
                case .histogram(let histogram):
                    histograms[name] = Histogram(
                        count: histogram.count, sum: histogram.sum,
                        buckets: histogram.buckets.map { Bucket(le: $0.bound, count: $0.count) })
                }
            }
        }
    }
}
