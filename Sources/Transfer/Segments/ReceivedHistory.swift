/// A history of the bytes received in the last seconds, from which rates and their errors over any period are computed.
struct ReceivedHistory {
    /// A rate measured over a period.
    struct Measure {
        /// The rate in bytes per second.
        var rate: Double
        /// The standard error of the rate, as a share of the rate.
        var error: Double
        /// The length of the period in milliseconds.
        var duration: Double
        /// Whether bytes arrived in bursts with silence between them.
        var isBursty: Bool
    }

    private var samples: [(time: Int64, bytes: Int64)] = []
    /// The number of samples kept at least: eight seconds at the shortest interval.
    private static let limit = 160
    /// The length of a bin in milliseconds.
    private static let bin = 50.0
    /// The share of the mean rate below which a bin is silent.
    private static let silence = 0.1
    /// The share of silent bins above which traffic is bursty.
    private static let burstiness = 0.3
    /// Milliseconds over which bursts average out, because servers limit rates by the second.
    private static let period = 1000.0

    /// The time of the oldest sample.
    var start: Int64? { samples.first?.time }

    mutating func record(_ bytes: Int64, at now: Int64) {
        if let last = samples.last, now <= last.time { return }
        if samples.count >= 2 * Self.limit { samples.removeFirst(Self.limit) }
        samples.append((now, bytes))
    }

    mutating func removeAll() { samples.removeAll(keepingCapacity: true) }

    /// Returns the bytes received up to a time, by linear interpolation; `nil` outside the recorded time.
    private func bytes(at time: Double) -> Double? {
        guard let first = samples.first, let last = samples.last, time >= Double(first.time),
            time <= Double(last.time)
        else { return nil }
        var (low, high) = (0, samples.count - 1)
        while high - low > 1 {
            let middle = (low + high) / 2
            if Double(samples[middle].time) <= time { low = middle } else { high = middle }
        }
        let (a, b) = (samples[low], samples[high])
        guard b.time > a.time else { return Double(a.bytes) }
        return Double(a.bytes) + Double(b.bytes - a.bytes) * (time - Double(a.time)) / Double(b.time - a.time)
    }

    /// Returns the rate from one time to another, limited to the recorded time.
    ///
    /// - Parameter shortest: The minimum length of the period in milliseconds.
    /// - Returns: `nil` if the recorded period is shorter.
    func measure(from: Int64, to end: Int64, shortest: Double = 70) -> Measure? {
        guard let first = samples.first?.time else { return nil }
        let (from, end) = (Double(max(from, first)), Double(end))
        let duration = end - from
        guard duration >= shortest, let begin = bytes(at: from), let total = bytes(at: end) else { return nil }
        var rate = (total - begin) / duration * 1000
        guard rate > 0 else { return Measure(rate: 0, error: 0, duration: duration, isBursty: true) }
        let bins = means(from: from, to: end, each: Self.bin)
        let isBursty = Double(bins.count { $0 < Self.silence * rate }) > Self.burstiness * Double(bins.count)
        if isBursty, duration >= Self.period {
            let whole = (duration / Self.period).rounded(.down) * Self.period
            if let begin = bytes(at: end - whole), total > begin { rate = (total - begin) / whole * 1000 }
        }
        var error = 0.0
        // Bursts average out over whole periods only.
        for length in isBursty ? [Self.period] : [Self.bin, 2 * Self.bin, 4 * Self.bin, 10 * Self.bin] {
            let means = length == Self.bin ? bins : means(from: from, to: end, each: length)
            guard means.count >= (isBursty ? 2 : 3) else { continue }
            error = max(error, Self.error(of: means) / rate)
        }
        if error == 0, bins.count < 3 || isBursty { error = isBursty ? 0.5 : 0.15 }
        return Measure(rate: rate, error: error, duration: duration, isBursty: isBursty)
    }

    /// Returns the rates of equal intervals, the last of which ends at `end`.
    private func means(from: Double, to end: Double, each length: Double) -> [Double] {
        let count = Int((end - from + 0.5) / length)
        guard count > 0 else { return [] }
        let edges = (0...count).map { bytes(at: max(from, end - Double(count - $0) * length)) ?? 0 }
        return zip(edges, edges.dropFirst()).map { ($1 - $0) / length * 1000 }
    }

    /// Returns the standard error of a mean, enlarged for few values.
    private static func error(of values: [Double]) -> Double {
        let count = Double(values.count)
        let mean = values.reduce(0, +) / count
        let squares = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
        return (squares / (count - 1) / count).squareRoot() * (1 + 2 / count)
    }
}
