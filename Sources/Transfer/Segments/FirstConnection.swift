/// The bytes received on a download's first connection while it was the only one, by the connection's age. Other
/// connections are compared with it at the same age, so that neither a server that sends a second's bytes at once nor a
/// slow start distorts the comparison.
struct FirstConnection {
    private var samples: [(age: Int64, bytes: Int64)] = []
    private static let limit = 64
    /// The age in milliseconds below which a connection cannot be evaluated.
    private static let youngest: Int64 = 30

    /// The highest number of other downloads' connections to the host at the time.
    private(set) var others = 0

    mutating func record(_ bytes: Int64, age: Int64, beside others: Int) {
        if let last = samples.last, age <= last.age { return }
        self.others = max(self.others, others)
        if samples.count < Self.limit { samples.append((age, bytes)) }
    }

    /// The time for which it was the only connection, in milliseconds.
    var age: Int64 { samples.last?.age ?? 0 }

    /// Returns whether all its bytes were received at the beginning and none during the last `time` milliseconds.
    func wasSilent(for time: Int64) -> Bool {
        guard let last = samples.last, last.bytes > 0,
            let silent = samples.last(where: { $0.bytes < last.bytes * 98 / 100 })
        else { return samples.count > 1 && age - (samples.first?.age ?? 0) >= time }
        let next = samples.first { $0.age > silent.age }?.age ?? last.age
        return last.age - next >= time
    }

    /// The rate in bytes per second if it was even from the beginning; `nil` otherwise.
    var evenRate: Double? {
        guard samples.count >= 3, let first = samples.first, let last = samples.last, last.age - first.age >= 90 else {
            return nil
        }
        let half = (first.age + last.age) / 2
        guard let middle = samples.min(by: { abs($0.age - half) < abs($1.age - half) }), middle.age > first.age,
            middle.age < last.age
        else { return nil }
        let early = Double(middle.bytes - first.bytes) / Double(middle.age - first.age)
        let late = Double(last.bytes - middle.bytes) / Double(last.age - middle.age)
        guard early > 0, late > 0, max(early, late) < 1.4 * min(early, late) else { return nil }
        return Double(last.bytes - first.bytes) / Double(last.age - first.age) * 1000
    }

    /// Returns the bytes received up to an age, interpolated; `nil` after the last sample.
    private func bytes(at age: Int64) -> Double? {
        guard let next = samples.firstIndex(where: { $0.age >= age }) else { return nil }
        let before = next > 0 ? samples[next - 1] : (age: 0, bytes: 0)
        let after = samples[next]
        guard after.age > before.age else { return Double(after.bytes) }
        let share = Double(age - before.age) / Double(after.age - before.age)
        return Double(before.bytes) + Double(after.bytes - before.bytes) * share
    }

    /// Returns another connection's bytes as a share of the first connection's bytes at the same age; `nil` if they
    /// cannot be compared.
    func share(of connection: PathObservation.Connection) -> Double? {
        guard connection.age >= Self.youngest, let bytes = bytes(at: connection.age), bytes > 0 else { return nil }
        return Double(connection.received) / bytes
    }
}
