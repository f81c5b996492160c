/// How many connections a download is to have: grown while each step makes it faster, and taken back where one did
/// not.
///
/// A value without a clock: it is told the time and the bytes that came.
struct ConnectionGrowth {
    private enum Phase: Equatable {
        /// So many milliseconds after the first byte the first step is taken.
        case beginning
        /// A step was taken, and is being watched.
        case watching(since: Int64, from: Int, rate: Double)
        /// Nothing is tried before `until`.
        case settled(until: Int64)
        /// What was taken away is being watched.
        case trimming(since: Int64, from: Int, rate: Double)
    }

    let segments: Segments
    /// Connections to have.
    private(set) var target = 1
    private var phase = Phase.beginning
    private var begun: Int64?
    private var window: [(time: Int64, bytes: Int64)] = []
    private var patience = Self.firstPatience
    private var isTrimmed = false
    /// The server, or what lies before it, will not have more.
    private var ceiling: Int

    /// Milliseconds between looks while something is tried, and otherwise.
    static let interval: Int64 = 50
    static let longInterval: Int64 = 250
    /// Milliseconds that a rate is taken over.
    private static let span: Int64 = 150
    /// Milliseconds within which a step has to pay.
    private static let trial: Int64 = 800
    private static let firstPatience: Int64 = 10_000
    private static let longestPatience: Int64 = 120_000
    /// Milliseconds after the last step before fewer connections are tried.
    private static let trimAfter: Int64 = 3_000
    /// What a step has to bring, and what a step back may cost.
    private static let gain = 1.15
    /// What makes the next step a large one.
    private static let leap = 2.5
    private static let loss = 0.93
    /// Milliseconds of work for which one connection more is worth asking for.
    private static let worthwhile = 0.3

    init(_ segments: Segments) {
        self.segments = segments
        ceiling = segments.most
        if !segments.isAutomatic { target = segments.most }
    }

    /// Whether something is being tried, so that it is to be asked again soon.
    var isTrying: Bool {
        guard segments.isAutomatic else { return false }
        if case .settled = phase { return false }
        return true
    }

    /// The host will not have more than `count` connections.
    mutating func limit(to count: Int) {
        ceiling = max(1, min(ceiling, count))
        target = min(target, ceiling)
    }

    /// A connection could not be had or broke: the others go on, and more are tried later.
    mutating func settle(at count: Int, now: Int64) {
        guard segments.isAutomatic else { return }
        target = max(1, min(target, count))
        phase = .settled(until: now + patience)
        patience = min(Self.longestPatience, 2 * patience)
    }

    /// - Parameters:
    ///   - now: milliseconds of a clock that no one sets.
    ///   - received: bytes that came so far over all connections.
    ///   - active: connections that bring bytes.
    ///   - left: bytes that are missing.
    ///   - isBusy: this machine can hardly take more than it gets.
    /// - Returns: ``target``.
    mutating func look(now: Int64, received: Int64, active: Int, left: Int64, isBusy: Bool = false) -> Int {
        guard segments.isAutomatic else { return target }
        window.append((now, received))
        while let first = window.dropFirst().first, now - first.time >= Self.span { window.removeFirst() }
        guard let first = window.first, now > first.time else { return target }
        let rate = Double(received - first.bytes) / Double(now - first.time) * 1000
        switch phase {
        case .beginning: if isBusy { settle(now) } else { step(now, rate, left, by: 4) }
        case .watching(let since, let from, let before):
            // A window that lies before the step says nothing of it.
            guard first.time >= since, active >= target || now - since >= Self.trial else { break }
            if rate >= before * Self.gain {
                if isBusy { settle(now) } else { step(now, rate, left, by: rate >= before * Self.leap ? 4 : 2) }
            } else if now - since >= Self.trial {
                // Those that brought nothing are given back.
                target = from
                settle(now)
            }
        case .settled(let until):
            if !isTrimmed, target > 1, now >= until - patience + Self.trimAfter, Double(left) > 8 * rate {
                isTrimmed = true
                phase = .trimming(since: now, from: target, rate: rate)
                target = max(1, target / 2)
            } else if now >= until, !isBusy, target < ceiling, Double(left) > 4 * rate {
                patience = min(Self.longestPatience, 2 * patience)
                phase = .watching(since: now, from: target, rate: rate)
                target = min(ceiling, target * 2)
            }
        case .trimming(let since, let from, let before):
            guard first.time >= since, active <= target, now - since >= Self.trial else { break }
            if rate < before * Self.loss { target = min(ceiling, from) } else { isTrimmed = target == 1 }
            settle(now)
        }
        return target
    }

    private mutating func step(_ now: Int64, _ rate: Double, _ left: Int64, by factor: Int) {
        guard target < ceiling, Double(left) > Self.worthwhile * rate else { return settle(now) }
        phase = .watching(since: now, from: target, rate: rate)
        target = min(ceiling, factor * target)
    }

    private mutating func settle(_ now: Int64) { phase = .settled(until: now + patience) }
}
