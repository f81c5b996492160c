@testable import Transfer

/// Downloads over a simulated line, with a fixed or an automatic number of connections.
struct GrowthSimulation {
    struct Result {
        /// The seconds until all downloads completed; infinite if they took longer than the limit.
        var seconds = Double.infinity
        /// The median number of connections of all downloads over the last third of the steps.
        var settled = 0
        /// The number of connections at each step of the clock.
        var counts: [Int] = []
    }

    private struct Download {
        var growth: ConnectionScaler
        var begins: Double
        var nextLook = 0.0
        var isStarted = false
        var isDone = false
        /// Whether it waits for connections that others may release; it checks again as soon as they do.
        var isExpecting = false
    }

    /// The limit on connections to one host.
    static let limit = 16
    /// The length of one step of the clock in seconds.
    let step: Double

    /// - Parameter longest: the time-out in seconds.
    func run(
        _ specification: SimulatedLine.Specification, _ segments: Segments, longest: Double,
        trace: ((Double, Double, Int, [ConnectionScaler]) -> Void)? = nil
    ) -> Result {
        var line = SimulatedLine(specification)
        var downloads = (0..<specification.tasks).map {
            Download(growth: ConnectionScaler(segments), begins: Double($0) * specification.stagger)
        }
        var capacity: PathCapacity?
        var trying: Int?
        var result = Result()
        var done = 0
        while line.now < longest {
            for task in downloads.indices where !downloads[task].isDone {
                if !downloads[task].isStarted {
                    guard line.now >= downloads[task].begins, line.connections.count < Self.limit else { continue }
                    downloads[task].isStarted = true
                    downloads[task].growth = ConnectionScaler(segments, capacity: capacity)
                    line.open(for: task)
                }
                if line.received[task] >= specification.size {
                    downloads[task].isDone = true
                    for connection in line.connections where connection.task == task { line.close(connection.number) }
                    if trying == task { trying = nil }
                    Self.offer(&downloads, at: line.now)
                    done += 1
                    continue
                }
                guard line.now + 1e-9 >= downloads[task].nextLook else { continue }
                let isWanted = downloads.contains { !$0.isStarted && line.now >= $0.begins }
                let before = line.connections.count
                look(task, &downloads[task], &line, &capacity, &trying, isWanted: isWanted)
                if line.connections.count < before { Self.offer(&downloads, at: line.now) }
            }
            if done == downloads.count {
                result.seconds = line.now
                break
            }
            trace?(line.now, line.received.reduce(0, +), line.connections.count, downloads.map(\.growth))
            result.counts.append(line.connections.count)
            line.pass(step)
        }
        let last = result.counts.suffix(max(1, result.counts.count / 3)).sorted()
        result.settled = last.isEmpty ? 0 : last[last.count / 2]
        return result
    }

    /// Schedules an immediate check for every waiting download, after connections have become free.
    private static func offer(_ downloads: inout [Download], at now: Double) {
        for task in downloads.indices where downloads[task].isExpecting {
            downloads[task].isExpecting = false
            downloads[task].nextLook = now
        }
    }

    private func look(
        _ task: Int, _ download: inout Download, _ line: inout SimulatedLine, _ capacity: inout PathCapacity?,
        _ trying: inout Int?, isWanted: Bool
    ) {
        let own = line.connections.filter { $0.task == task }
        let receiving = own.filter { $0.answers < line.now }
        if receiving.isEmpty { return }
        let before = download.growth.capacity
        let target = download.growth.look(
            PathObservation(
                now: Int64((line.now * 1000).rounded()), received: Int64(line.received.reduce(0, +)),
                connections: receiving.map {
                    PathObservation.Connection(
                        number: $0.number, age: Int64((line.now - $0.answers) * 1000), received: Int64($0.received))
                },
                others: line.connections.count - own.count,
                left: Int64(line.specification.size - line.received[task]), setUp: Int64(line.setUp * 1000),
                capacity: capacity,
                mayTry: trying == nil || trying == task))
        if download.growth.capacity != before { capacity = download.growth.capacity }
        if download.growth.isTrying { trying = trying ?? task } else if trying == task { trying = nil }
        if isWanted, own.count > 1, line.connections.count >= Self.limit {
            line.close(own[own.count - 1].number)
        } else if own.count > target {
            for connection in own.suffix(own.count - target) { line.close(connection.number) }
        } else {
            let count = min(target, own.count + Self.limit - line.connections.count)
            for _ in own.count..<max(own.count, count) { line.open(for: task) }
            download.isExpecting = count < target
            download.growth.cap(to: max(own.count, count))
        }
        download.isExpecting = download.isExpecting || download.growth.isWaiting
        download.nextLook =
            line.now + (download.growth.isTrying ? 0.05 : own.count == 1 && !download.growth.isWaiting ? 1 : 0.25)
    }
}
