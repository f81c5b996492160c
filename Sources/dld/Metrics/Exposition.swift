/// The text format of metrics that Prometheus and the textfile collector of node_exporter read, closed by the end mark of
/// OpenMetrics.
enum Exposition {
    /// - Parameter instance: the name of the daemon beside others, which becomes a label of every series. The collector
    ///   reads the files of all of them, and refuses two series that are the same.
    static func text(_ readings: [MetricReading], instance: String? = nil) -> String {
        let common = instance.map { [MetricSample.Label(name: "daemon", value: $0)] } ?? []
        var text = ""
        for reading in readings {
            let name = reading.family.name
            text += "# HELP \(name) \(escaped(reading.family.help, quotes: false))\n"
            text += "# TYPE \(name) \(reading.family.kind.rawValue)\n"
            for sample in reading.samples { text += lines(name, common + sample.labels, sample.value) }
        }
        return text + "# EOF\n"
    }

    /// Returns the name of a series with its labels.
    static func series(_ name: String, _ labels: [MetricSample.Label]) -> String {
        if labels.isEmpty { return name }
        return name + "{" + labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }.joined(separator: ",")
            + "}"
    }

    private static func lines(
        _ name: String, _ labels: [MetricSample.Label], _ value: MetricSample.Value
    ) -> String {
        switch value {
        case .number(let number): return "\(series(name, labels)) \(self.number(number))\n"
        case .histogram(let histogram):
            var text = ""
            func bucket(_ bound: String, _ count: Int64) {
                let labels = labels + [.init(name: "le", value: bound)]
                text += "\(series(name + "_bucket", labels)) \(count)\n"
            }
            for each in histogram.buckets { bucket(number(each.bound), each.count) }
            bucket("+Inf", histogram.count)
            text += "\(series(name + "_sum", labels)) \(number(histogram.sum))\n"
            text += "\(series(name + "_count", labels)) \(histogram.count)\n"
            return text
        }
    }

    /// Returns a number; whole ones have no decimals.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return Int64(exactly: value).map { "\($0)" } ?? "\(value)"
    }

    /// Escapes a label's value, or a help text, in which quotation marks stay as they are.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
