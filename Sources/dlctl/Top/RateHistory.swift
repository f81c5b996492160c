import TaskModel

/// The throughput of the last minutes, one sample for each second at most.
struct RateHistory: Equatable {
    private struct Sample: Equatable {
        var second: Int64
        var rate: Int64
    }

    /// The maximum number of samples.
    private static let capacity = 1_200
    /// The seconds for which a sample stands for later ones that are missing.
    private static let validity: Int64 = 3

    /// The samples, oldest first.
    private var samples: [Sample] = []

    mutating func add(_ rate: Int64, at moment: Milliseconds) {
        let sample = Sample(second: moment / 1000, rate: max(0, rate))
        // A clock that was set back begins anew.
        if let last = samples.last, last.second > sample.second { samples.removeAll() }
        if samples.last?.second == sample.second { samples.removeLast() }
        samples.append(sample)
        if samples.count > Self.capacity { samples.removeFirst(samples.count - Self.capacity) }
    }

    /// Returns the mean rates of equal periods up to the one that ended last, oldest first; `nil` where nothing is
    /// known.
    ///
    /// - Parameters:
    ///   - count: the number of periods.
    ///   - seconds: the length of a period. Periods begin at multiples of it, so that they do not change as time
    ///     passes.
    func means(_ count: Int, of seconds: Int64, at moment: Milliseconds) -> [Int64?] {
        let seconds = max(1, seconds)
        let last = moment / 1000 / seconds
        let first = last - Int64(max(0, count)) + 1
        var sums = [(sum: Double, count: Int)](repeating: (0, 0), count: max(0, count))
        for sample in samples {
            let index = Int(sample.second / seconds - first)
            guard sums.indices.contains(index) else { continue }
            sums[index].sum += Double(sample.rate)
            sums[index].count += 1
        }
        var means: [Int64?] = sums.map { $0.count > 0 ? Int64(min($0.sum / Double($0.count), 9e18)) : nil }
        for index in means.indices.dropFirst() where means[index] == nil {
            let start = (first + Int64(index)) * seconds
            let before = samples.last { $0.second < start }
            if let before, start - before.second <= Self.validity { means[index] = before.rate }
        }
        return means
    }
}
