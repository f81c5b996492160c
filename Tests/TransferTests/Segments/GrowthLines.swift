import Glibc

/// Lines for the simulation: named ones and random ones.
enum GrowthLines {
    private static let kib = 1024.0
    private static let mib = 1024.0 * 1024

    /// The named lines, by which a change of the algorithm is judged one by one.
    static var named: [SimulatedLine.Specification] {
        var lines: [SimulatedLine.Specification] = []
        for each in [50 * kib, 200 * kib, mib, 4 * mib, 20 * mib] {
            let size = min(1024 * mib, max(20 * mib, each * 16 * 10))
            let rate = each >= mib ? "\(Int(each / mib)) MiB/s" : "\(Int(each / kib)) KiB/s"
            lines.append(.init(name: "\(rate) a connection, in bursts", each: each, burst: 1, size: size))
            lines.append(.init(name: "\(rate) a connection, even", each: each, size: size))
        }
        lines.append(.init(name: "8 MiB/s for all", total: 8 * mib, size: 100 * mib))
        lines.append(.init(name: "100 MiB/s for all", total: 100 * mib, size: 800 * mib))
        for latency in [0.02, 0.08, 0.2] {
            let name = "latency of \(Int(latency * 1000)) ms, "
            lines.append(.init(name: name + "8 MiB/s for all", total: 8 * mib, latency: latency, size: 100 * mib))
            lines.append(.init(name: name + "1 MiB/s each", each: mib, latency: latency, size: 160 * mib))
            lines.append(
                .init(name: name + "1 MiB/s each in bursts", each: mib, burst: 1, latency: latency, size: 160 * mib))
            lines.append(
                .init(
                    name: name + "256 KiB of window", latency: latency, window: 256 * kib,
                    size: 2_560 * kib / latency * 16))
        }
        lines.append(.init(name: "jitter, 2 MiB/s each", each: 2 * mib, noise: 0.5, size: 300 * mib))
        lines.append(.init(name: "jitter, 8 MiB/s for all", total: 8 * mib, sharedNoise: 0.5, size: 100 * mib))
        lines.append(.init(name: "one slow of eight, 2 MiB/s each", each: 2 * mib, slowEvery: 8, size: 300 * mib))
        lines.append(.init(name: "one slow of eight, 8 MiB/s for all", total: 8 * mib, slowEvery: 8, size: 100 * mib))
        lines.append(.init(name: "2 MiB/s each, 8 MiB/s for all", each: 2 * mib, total: 8 * mib, size: 100 * mib))
        lines.append(.init(name: "2 MiB/s each, 12 MiB/s for all", each: 2 * mib, total: 12 * mib, size: 150 * mib))
        lines.append(
            .init(name: "drop and return, 2 MiB/s each", each: 2 * mib, drop: 5..<10, size: 300 * mib))
        lines.append(
            .init(name: "drop and return, 8 MiB/s for all", total: 8 * mib, drop: 5..<10, size: 100 * mib))
        lines.append(.init(name: "four downloads, 1 MiB/s each", each: mib, burst: 1, tasks: 4, size: 40 * mib))
        lines.append(
            .init(
                name: "four short downloads, 1 MiB/s each", each: mib, burst: 1, tasks: 4, stagger: 0.01,
                size: 24 * mib))
        lines.append(
            .init(name: "two downloads, 1 MiB/s each, even", each: mib, tasks: 2, stagger: 0.01, size: 24 * mib))
        lines.append(
            .init(
                name: "four downloads one by one, 1 MiB/s each", each: mib, burst: 1, tasks: 4, stagger: 0.5,
                size: 24 * mib))
        lines.append(
            .init(name: "four downloads, 8 MiB/s for all", total: 8 * mib, tasks: 4, stagger: 0.5, size: 25 * mib))
        return lines
    }

    /// Returns a line of random rates, sharing, latency and noise.
    static func random(using generator: inout some RandomNumberGenerator) -> SimulatedLine.Specification {
        func chance(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &generator) < share }
        func between(_ low: Double, _ high: Double) -> Double {
            low * pow(high / low, Double.random(in: 0..<1, using: &generator))
        }
        var line = SimulatedLine.Specification(seed: generator.next())
        var rate: Double
        let each = between(50 * kib, 20 * mib)
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<4: (line.name, line.each, line.burst, rate) = ("each in bursts", each, 1, 16 * each)
        case 4..<8: (line.name, line.each, rate) = ("each", each, 16 * each)
        case 8..<12:
            line.total = between(200 * kib, 100 * mib)
            (line.name, rate) = ("shared", line.total)
        case 12..<17:
            let need = Double.random(in: 1...24, using: &generator)
            (line.name, line.each, line.total) = ("shared and each", each, each * need)
            if chance(0.3) { (line.name, line.burst) = ("shared and each in bursts", 1) }
            rate = each * min(16, need)
        default:
            line.latency = between(0.02, 0.25)
            line.window = between(64 * kib, 1024 * kib)
            line.total = between(2 * mib, 100 * mib)
            (line.name, rate) = ("window", min(line.total, 16 * line.window / line.latency))
        }
        if line.name != "window", chance(0.6) { line.latency = between(0.001, 0.25) }
        if line.latency > 0.01 { rate = min(rate, 16 * line.window / line.latency) }
        if chance(0.5) {
            line.noise = Double.random(in: 0...0.5, using: &generator)
            line.sharedNoise = Double.random(in: 0...0.5, using: &generator)
            line.noiseTime = between(0.05, 1)
        }
        if chance(0.1) { line.slowEvery = 8 }
        if chance(0.15) {
            line.tasks = Int.random(in: 2...4, using: &generator)
            line.stagger = chance(0.5) ? 0 : Double.random(in: 0...2, using: &generator)
        }
        let seconds = between(4, 60)
        line.size = rate * seconds / Double(line.tasks)
        if chance(0.1) { line.drop = seconds / 2..<seconds * 0.8 }
        return line
    }
}
