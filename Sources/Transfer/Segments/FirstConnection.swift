/// What the first connection of a download brought while it was the only one, by its age: others are held to it at the
/// same age, so that a server which sends a second's bytes at once, or a line that is slow to start, misleads nobody.
struct FirstConnection {
    private var samples: [(age: Int64, bytes: Int64)] = []
    private static let limit = 64
    /// Milliseconds below which a connection is too young to say anything.
    private static let youngest: Int64 = 30

    /// Connections of other downloads from the host that were there at most.
    private(set) var others = 0

    mutating func note(_ bytes: Int64, age: Int64, beside others: Int) {
        if let last = samples.last, age <= last.age { return }
        self.others = max(self.others, others)
        if samples.count < Self.limit { samples.append((age, bytes)) }
    }

    /// Milliseconds that it was alone for.
    var age: Int64 { samples.last?.age ?? 0 }

    /// Whether all its bytes came at the beginning, and none for so many milliseconds before it was joined.
    func wasSilent(for time: Int64) -> Bool {
        guard let last = samples.last, last.bytes > 0,
            let silent = samples.last(where: { $0.bytes < last.bytes * 98 / 100 })
        else { return samples.count > 1 && age - (samples.first?.age ?? 0) >= time }
        let next = samples.first { $0.age > silent.age }?.age ?? last.age
        return last.age - next >= time
    }

    /// Bytes a second, where they came evenly from the beginning; `nil` otherwise.
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

    /// Bytes that it had brought at an age; `nil` before its first sample and after its last.
    private func bytes(at age: Int64) -> Double? {
        guard let next = samples.firstIndex(where: { $0.age >= age }) else { return nil }
        let before = next > 0 ? samples[next - 1] : (age: 0, bytes: 0)
        let after = samples[next]
        guard after.age > before.age else { return Double(after.bytes) }
        let share = Double(age - before.age) / Double(after.age - before.age)
        return Double(before.bytes) + Double(after.bytes - before.bytes) * share
    }

    /// What another connection brought, as a share of what the first had at that age; `nil` where they cannot be
    /// compared.
    func share(of connection: LineSight.Connection) -> Double? {
        guard connection.age >= Self.youngest, let bytes = bytes(at: connection.age), bytes > 0 else { return nil }
        return Double(connection.received) / bytes
    }
}
