/// The controller of a download's number of connections.
///
/// The number grows quickly at first, because an additional connection costs little and a second with too few costs
/// much. Then smaller numbers are tried, each for as long as a significant measurement needs. Connections that each
/// have a rate of their own are never given up.
///
/// It is a value without a clock: the caller passes the time and the received bytes. "Line" means the network path to a
/// host.
struct ConnectionScaler {
    /// A change of the number of connections under evaluation.
    struct Step {
        /// The number of connections before the change.
        var from: Int
        /// The time of the change, in milliseconds.
        var since: Int64
        /// The start of the measurement before the change. The measurement ends at the first response on a new
        /// connection.
        var measuredFrom: Int64
        /// The highest connection number before the change. Connections with higher numbers were added by it.
        var newest = 0
        /// The time of the first response on a new connection.
        var first: Int64?
        /// The time at which at least three quarters of the new connections had responses.
        var joined: Int64?
        /// The throughput before the change.
        var before: ReceivedHistory.Measure?
        /// The number of other downloads' connections at the time of the change.
        var others: Int
    }

    enum Phase {
        /// A single connection, whose first bytes are measured.
        case beginning
        /// An increase at the start of the download.
        case climbing(Step)
        /// An increase tried later, on a settled line.
        case probing(Step)
        /// A measurement of the current number, from `since` on.
        case watching(since: Int64, others: Int)
        /// A decrease under evaluation.
        case trimming(Step)
        /// A rest, during which no scheduled trial begins before `until`.
        case settled(since: Int64, until: Int64)
    }

    let segments: Segments
    /// The number of connections to use.
    var target = 1
    /// The capacity of the path, once it is known.
    var capacity: PathCapacity?
    var phase = Phase.beginning
    var history = ReceivedHistory()
    var alone = FirstConnection()
    /// The bytes of each newer connection, as a share of the first connection's bytes at the same age.
    var shares: [Int: Double] = [:]
    static let shareLimit = 256
    /// The throughput by number of connections, over all downloads from the host.
    var levels: [Int: ReceivedHistory.Measure] = [:]
    /// The rate when the phase was last settled, in bytes per second.
    var usual: Double?
    /// The time since which the current number of connections has applied, in milliseconds.
    var levelSince: Int64 = 0
    /// The time of the first look with received bytes, in milliseconds.
    var begun: Int64?
    /// The time since which this machine has been busy, in milliseconds.
    var busySince: Int64?
    /// The time until which bytes held back by this machine make measurements invalid, in milliseconds.
    var heldUntil: Int64 = .min
    /// The current number of other downloads' connections.
    var present = 0
    /// The value of ``present`` when the host had no room for more connections of this download.
    var cappedBeside: Int?
    /// The number of connections above which none were tried, because too few bytes seemed to be left.
    var untriedAbove: Int?
    /// Whether the number would grow if the caller allowed it.
    var isWaiting = false
    var trialInterval = Self.firstTrialInterval
    var probeFrom: Int64 = 0
    /// The factor by which trials are longer than at first, because earlier ones were inconclusive.
    var thoroughness = 1.0
    var isDoubtful = false
    /// Whether the server has burst allowances for its connections. Fewer connections then reach the same rate for a
    /// while.
    var hasSavings = false
    /// Whether the present turn is for a trial of more connections, not of fewer. It is toggled before each turn.
    var isNextProbe = false
    /// The last decrease that cost no throughput.
    var trimmed: Step?
    /// The number of other downloads' connections when the phase was last settled; -1 if unknown.
    var others = -1
    /// The maximum number of connections.
    var ceiling: Int { segments.most }

    /// Milliseconds between looks during a trial.
    static let interval: Int64 = 50
    /// Milliseconds between looks at other times.
    static let longInterval: Int64 = 250
    /// The factor of an increase.
    static let factor = 4
    /// Milliseconds for which the first connection is measured, at least.
    static let firstTime: Int64 = 100
    /// Milliseconds that a step lasts, at least.
    static let stepTime: Int64 = 100
    /// Milliseconds to wait for a response before the next step is taken.
    static let answerTime: Int64 = 150
    static let firstTrialInterval: Int64 = 6_000
    static let longestTrialInterval: Int64 = 120_000
    /// Milliseconds for which this machine must be busy before no more connections are opened.
    static let busyTime: Int64 = 300
    /// Milliseconds for which held-back bytes indicate that this machine limits the rate.
    static let holdTime: Int64 = 1_500
    /// The share of the first connection's early throughput from which on a connection is considered not slowed down.
    static let undiminished = 0.7
    /// The share of the previous throughput that fewer connections must reach.
    static let enough = 0.94
    /// Milliseconds after which a trial of fewer connections may end early.
    static let earlyTime = 500.0
    /// The share of the previous throughput below which such a trial ends early.
    static let earlyLoss = 0.85
    /// Milliseconds during which a decrease may prove to have been one too many.
    static let probation: Int64 = 6_000
    /// The share of the previous throughput that must remain during ``probation``.
    static let kept = 0.9
    /// The gain in throughput that more connections must reach, as a factor.
    static let worthwhile = 1.05
    /// The maximum cost of a trial, as a share of the remaining time.
    static let price = 0.045
    /// The share of the usual rate below which more connections are tried.
    static let fall = 0.65

    /// Creates the controller of a download.
    ///
    /// - Parameter capacity: The capacity that earlier downloads from the host have measured.
    init(_ segments: Segments, capacity: PathCapacity? = nil) {
        self.segments = segments
        self.capacity = capacity
        if !segments.isAutomatic { target = segments.most }
    }

    /// Whether a trial is in progress, so that the next look should follow soon.
    var isTrying: Bool {
        guard segments.isAutomatic, !isWaiting || target > 1 else { return false }
        if case .settled = phase { return false }
        return true
    }

    /// Limits the number of connections for now.
    ///
    /// - Parameter isFull: Whether the host has no room for more; otherwise there is no work for them.
    mutating func cap(to count: Int, isFull: Bool = true) {
        guard segments.isAutomatic, count < target else { return }
        target = max(1, count)
        isWaiting = true
        if isFull { cappedBeside = present }
    }

    /// Updates the number of connections from the state of the line, and returns ``target``.
    mutating func look(_ sight: PathObservation) -> Int {
        guard segments.isAutomatic else { return target }
        if sight.isHeld { heldUntil = sight.now + Self.holdTime }
        isWaiting = false
        present = sight.others
        if sight.now < heldUntil {
            standStill(sight)
            return target
        }
        history.record(sight.received, at: sight.now)
        if sight.capacity != capacity, let measured = sight.capacity { adopt(measured, sight) }
        if sight.isBusy { busySince = busySince ?? sight.now } else { busySince = nil }
        if shares.count > Self.shareLimit { shares = [:] }
        for connection in sight.connections {
            if let share = alone.share(of: connection) { shares[connection.number] = share }
        }
        switch phase {
        case .beginning: begin(sight)
        case .climbing(let step): climb(step, sight)
        case .watching(let since, let others): watch(since, others, sight)
        case .probing(let step): probe(step, sight)
        case .trimming(let step): trim(step, sight)
        case .settled(let since, let until): rest(since, until, sight)
        }
        return target
    }

    /// Discards the measurements while this machine holds bytes back. The rate then says nothing about the line.
    mutating func standStill(_ sight: PathObservation) {
        history.removeAll()
        usual = nil
        trimmed = nil
        if case .beginning = phase { isWaiting = true } else { settle(sight) }
    }

    /// Adopts the capacity that another download from the host has measured.
    mutating func adopt(_ measured: PathCapacity, _ sight: PathObservation) {
        capacity = measured
        if case .beginning = phase { return }
        settle(sight)
        others = -1
    }

    mutating func change(to count: Int, _ sight: PathObservation) {
        let count = max(1, min(ceiling, count))
        guard count != target else { return }
        target = count
        levelSince = sight.now
    }

    /// Returns the age in milliseconds below which a connection's rate is not compared with that of a saturated line.
    static func warmUp(_ sight: PathObservation) -> Int64 { 100 + 2 * sight.setUp }

    func median(of values: [Double]) -> Double? {
        values.isEmpty ? nil : values.sorted()[values.count / 2]
    }
}
