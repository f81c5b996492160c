/// How many connections a download is to have.
///
/// The number grows quickly at first, since a connection too many costs little and a second with too few costs much.
/// Then fewer are tried, for as long as the bytes need to tell the difference, unless each connection is known to have
/// a rate of its own: those are never given back.
///
/// A value without a clock: it is told the time and the bytes that came.
struct ConnectionGrowth {
    /// A change of the number that is being judged.
    struct Step {
        /// Connections before it.
        var from: Int
        var since: Int64
        /// What came from here on until the first new one answered came before it.
        var measuredFrom: Int64
        /// Connections with a greater number came by it.
        var newest = 0
        /// When the first of the new ones answered, and when most of them had.
        var first: Int64?
        var joined: Int64?
        /// What came before it.
        var before: ReceivedHistory.Measure?
        /// Connections of other downloads when it was taken.
        var others: Int
    }

    enum Phase {
        /// One connection, whose first bytes are measured.
        case beginning
        case climbing(Step)
        /// More are tried, long after the beginning.
        case probing(Step)
        /// What the present number brings is measured, from `since` on.
        case watching(since: Int64, others: Int)
        case trimming(Step)
        /// Nothing is tried before `until`.
        case settled(since: Int64, until: Int64)
    }

    let segments: Segments
    /// Connections to have.
    var target = 1
    /// What the line has taught, once that is known.
    var lesson: LineLesson?
    var phase = Phase.beginning
    var history = ReceivedHistory()
    var alone = FirstConnection()
    /// What each newer connection brought as a share of what the first had at that age.
    var shares: [Int: Double] = [:]
    static let shareLimit = 256
    /// What so many connections brought, over all downloads from the host.
    var levels: [Int: ReceivedHistory.Measure] = [:]
    /// The rate when it was last settled.
    var usual: Double?
    /// When the present number of connections began, and bytes began to come.
    var levelSince: Int64 = 0
    var begun: Int64?
    var busySince: Int64?
    var heldUntil: Int64 = .min
    /// Other downloads' connections now, and when the host had no room for more of this one's.
    var present = 0
    var cappedBeside: Int?
    /// Connections above which none were tried, since what was left seemed to be too little for that.
    var untriedAbove: Int?
    /// It would go on if it were let.
    var isWaiting = false
    var patience = Self.firstPatience
    var probeFrom: Int64 = 0
    /// How much longer than at first trials last, since those before left it open.
    var thoroughness = 1.0
    var isDoubtful = false
    /// The server saves up for its connections what the line does not take: fewer bring as much for a while.
    var hasSavings = false
    /// Patience ends in a trial of more connections and in one of fewer by turns.
    var isNextProbe = false
    /// The last step back that cost nothing.
    var trimmed: Step?
    /// Other downloads' connections when it was last settled; -1: unknown.
    var others = -1
    /// Connections that are allowed at most.
    var ceiling: Int { segments.most }

    /// Milliseconds between looks while something is tried, and otherwise.
    static let interval: Int64 = 50
    static let longInterval: Int64 = 250
    static let factor = 4
    /// Milliseconds that the first connection is measured for, and a step at least.
    static let firstTime: Int64 = 100
    static let stepTime: Int64 = 100
    /// Milliseconds that an answer is waited for before the next step is taken.
    static let answerTime: Int64 = 150
    static let firstPatience: Int64 = 6_000
    static let longestPatience: Int64 = 120_000
    /// Milliseconds that this machine has to be busy for before no more connections are asked for.
    static let busyTime: Int64 = 300
    /// Milliseconds for which bytes that were kept back say that this machine sets the rate.
    static let holdTime: Int64 = 1_500
    /// From this share on, a connection brings what the first one brought when it was alone.
    static let undiminished = 0.7
    /// What fewer connections have to bring, as a share of what more of them did.
    static let enough = 0.94
    /// Milliseconds after which a trial of fewer connections may end early, and the share of the rate below which it does.
    static let earlyTime = 500.0
    static let earlyLoss = 0.85
    /// Milliseconds for which a step back may turn out to have been one too many, and the share of the rate that has
    /// to be left.
    static let probation: Int64 = 6_000
    static let kept = 0.9
    /// What more connections have to bring.
    static let worthwhile = 1.05
    /// What a trial may cost, as a share of the time that is left.
    static let price = 0.045
    /// The rate as a share of the usual one below which more connections are tried.
    static let fall = 0.65

    /// - Parameter lesson: what earlier downloads from the host taught.
    init(_ segments: Segments, lesson: LineLesson? = nil) {
        self.segments = segments
        self.lesson = lesson
        if !segments.isAutomatic { target = segments.most }
    }

    /// Whether something is being tried, so that it is to be asked again soon.
    var isTrying: Bool {
        guard segments.isAutomatic, !isWaiting || target > 1 else { return false }
        if case .settled = phase { return false }
        return true
    }

    /// No more than `count` connections are to be had now.
    ///
    /// - Parameter isFull: the host has no room for more; otherwise there is no work for them.
    mutating func cap(to count: Int, isFull: Bool = true) {
        guard segments.isAutomatic, count < target else { return }
        target = max(1, count)
        isWaiting = true
        if isFull { cappedBeside = present }
    }

    /// - Returns: ``target``.
    mutating func look(_ sight: LineSight) -> Int {
        guard segments.isAutomatic else { return target }
        if sight.isHeld { heldUntil = sight.now + Self.holdTime }
        isWaiting = false
        present = sight.others
        if sight.now < heldUntil {
            standStill(sight)
            return target
        }
        history.note(sight.received, at: sight.now)
        if sight.lesson != lesson, let taught = sight.lesson { learn(taught, sight) }
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

    /// What comes is what this machine lets in: it says nothing of the line.
    mutating func standStill(_ sight: LineSight) {
        history.removeAll()
        usual = nil
        trimmed = nil
        if case .beginning = phase { isWaiting = true } else { settle(sight) }
    }

    /// Another download from the host has found something out.
    mutating func learn(_ taught: LineLesson, _ sight: LineSight) {
        lesson = taught
        if case .beginning = phase { return }
        settle(sight)
        others = -1
    }

    mutating func change(to count: Int, _ sight: LineSight) {
        let count = max(1, min(ceiling, count))
        guard count != target else { return }
        target = count
        levelSince = sight.now
    }

    /// Milliseconds that a connection is too young for to be compared with a line that was filled.
    static func youth(_ sight: LineSight) -> Int64 { 100 + 2 * sight.setUp }

    func median(of values: [Double]) -> Double? {
        values.isEmpty ? nil : values.sorted()[values.count / 2]
    }
}
