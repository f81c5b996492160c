/// A simulation of a line to a server and of the bytes that its connections receive, on a virtual clock.
struct SimulatedLine {
    struct Specification {
        var name = ""
        /// The limits in bytes per second for one connection, and for all together.
        var each = Double.infinity
        var total = Double.infinity
        /// The period in seconds whose bytes a limited connection receives in one burst, like those of servers that
        /// count by the second; 0 for an even rate.
        var burst = 0.0
        /// The round-trip time in seconds.
        var latency = 0.0002
        /// The limit on bytes in flight for one connection.
        var window = 4e6
        /// The share by which rates vary, for each connection and for the line, and the seconds for which they are
        /// constant.
        var noise = 0.0
        var sharedNoise = 0.0
        var noiseTime = 0.2
        /// The number of connections of which one has a tenth of its rate; 0 for none.
        var slowEvery = 0
        /// The period in seconds in which all rates are a quarter.
        var drop: Range<Double>?
        /// The number of concurrent downloads, and the seconds between their starts.
        var tasks = 1
        var stagger = 0.0
        /// The size of each download in bytes.
        var size = 1e8
        var seed: UInt64 = 1
    }

    struct Connection {
        let number: Int
        let task: Int
        let answers: Double
        /// The bytes received, and those that may be received at once.
        var received = 0.0
        var credit = 0.0
        var refilled: Double
        fileprivate var share = 0.0
        fileprivate var demand = 0.0
    }

    private(set) var specification: Specification
    private(set) var now = 0.0
    private(set) var connections: [Connection] = []
    private(set) var received: [Double]
    private var last = 0

    init(_ specification: Specification) {
        self.specification = specification
        received = Array(repeating: 0, count: specification.tasks)
    }

    /// The seconds until a new connection receives a response.
    var setUp: Double { 2 * specification.latency + 0.001 }

    mutating func open(for task: Int) {
        last += 1
        connections.append(Connection(number: last, task: task, answers: now + setUp, refilled: now + setUp))
    }

    mutating func close(_ number: Int) { connections.removeAll { $0.number == number } }

    mutating func change(to specification: Specification) { self.specification = specification }

    /// Advances the clock.
    mutating func pass(_ seconds: Double) {
        let end = now + seconds
        var factor = 1.0
        if let drop = specification.drop, drop.contains(now) { factor = 0.25 }
        let epoch = UInt64(now / specification.noiseTime)
        for index in connections.indices {
            connections[index].demand = demand(index, seconds, end, factor, epoch)
            connections[index].share = 0
        }
        var rest = specification.total * factor * seconds
        if specification.sharedNoise > 0 {
            rest *= 1 + specification.sharedNoise * (2 * Self.uniform(specification.seed, 999, epoch) - 1)
        }
        if rest.isInfinite {
            for index in connections.indices { connections[index].share = connections[index].demand }
        } else {
            fill(&rest)
        }
        for index in connections.indices {
            let share = connections[index].share
            connections[index].received += share
            connections[index].credit -= share
            received[connections[index].task] += share
        }
        now = end
    }

    private mutating func demand(
        _ index: Int, _ seconds: Double, _ end: Double, _ factor: Double, _ epoch: UInt64
    ) -> Double {
        let connection = connections[index]
        guard end > connection.answers else { return 0 }
        let time = min(seconds, end - connection.answers)
        var rate = specification.each * factor
        if specification.slowEvery > 0, connection.number % specification.slowEvery == 3 % specification.slowEvery {
            rate = min(rate, specification.total) / 10
        }
        if specification.noise > 0 {
            rate *=
                1 + specification.noise
                * (2 * Self.uniform(specification.seed, UInt64(connection.number), epoch) - 1)
        }
        var wanted = rate * time
        if specification.burst > 0, rate.isFinite {
            if connection.received == 0, connection.credit == 0 {
                connections[index].credit = rate * specification.burst
            }
            while end >= connections[index].refilled + specification.burst {
                connections[index].refilled += specification.burst
                connections[index].credit = max(0, connections[index].credit) + rate * specification.burst
            }
            wanted = max(0, connections[index].credit)
        }
        // Slow start: the window grows by the bytes received.
        let window = min(specification.window, 14_600 + connection.received)
        return min(wanted, window * time / max(0.0002, specification.latency), 2e9 * time)
    }

    /// Distributes the line's bytes: connections that want less than an equal part get what they want, and the others
    /// share the rest.
    private mutating func fill(_ rest: inout Double) {
        var open = connections.indices.filter { connections[$0].demand > 0 }
        while !open.isEmpty, rest > 1e-6 {
            let part = rest / Double(open.count)
            let modest = open.filter { connections[$0].demand <= part }
            if modest.isEmpty {
                for index in open { connections[index].share = part }
                return
            }
            for index in modest {
                connections[index].share = connections[index].demand
                rest -= connections[index].demand
            }
            open.removeAll { connections[$0].demand <= part }
        }
    }

    /// Returns a number between 0 and 1 that is the same for the same arguments.
    private static func uniform(_ seed: UInt64, _ number: UInt64, _ epoch: UInt64) -> Double {
        var value = seed &* 0x9E37_79B9_7F4A_7C15 &+ number &* 0xBF58_476D_1CE4_E5B9 &+ epoch &* 0x94D0_49BB_1331_11EB
        value ^= value >> 31
        value = value &* 0xD6E8_FEB8_6659_FD93
        value ^= value >> 32
        value = value &* 0xD6E8_FEB8_6659_FD93
        value ^= value >> 32
        return Double(value >> 11) / Double(1 << 53)
    }
}
