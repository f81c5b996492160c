/// How many connections a download is to have.
///
/// The number grows quickly at first, since a connection too many costs little and a second with too few costs much.
/// Then fewer are tried, for as long as the bytes need to tell the difference, unless each connection is known to have
/// a rate of its own: those are never given back.
///
/// A value without a clock: it is told the time and the bytes that came.
struct ConnectionGrowth {
    /// A change of the number that is being judged.
    private struct Step {
        /// Connections before it.
        var from: Int
        var since: Int64
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

    private enum Phase {
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
    private(set) var target = 1
    /// What the line has taught, once that is known.
    private(set) var lesson: LineLesson?
    private var phase = Phase.beginning
    private var history = ReceivedHistory()
    private var alone = FirstConnection()
    /// What each newer connection brought as a share of what the first had at that age.
    private var shares: [Int: Double] = [:]
    /// What so many connections brought, over all downloads from the host.
    private var levels: [Int: ReceivedHistory.Measure] = [:]
    /// The rate when it was last settled.
    private var usual: Double?
    /// When the present number of connections began, and bytes began to come.
    private var levelSince: Int64 = 0
    private var begun: Int64?
    private var busySince: Int64?
    private var heldUntil: Int64 = .min
    /// It would go on if it were let.
    private(set) var isWaiting = false
    private var patience = Self.firstPatience
    private var probeFrom: Int64 = 0
    /// How much longer than at first trials last, since those before left it open.
    private var thoroughness = 1.0
    private var isDoubtful = false
    /// The server saves up for its connections what the line does not take: fewer bring as much for a while.
    private var hasSavings = false
    /// Patience ends in a trial of more connections and in one of fewer by turns.
    private var isNextProbe = false
    /// The last step back that cost nothing.
    private var trimmed: Step?
    /// Other downloads' connections when it was last settled; -1: unknown.
    private var others = -1
    /// The server, or what lies before it, will not have more.
    private var ceiling: Int

    /// Milliseconds between looks while something is tried, and otherwise.
    static let interval: Int64 = 50
    static let longInterval: Int64 = 250
    private static let factor = 4
    /// Milliseconds that the first connection is measured for, and a step at least.
    private static let firstTime: Int64 = 100
    private static let stepTime: Int64 = 100
    /// Milliseconds that an answer is waited for before the next step is taken.
    private static let answerTime: Int64 = 150
    private static let firstPatience: Int64 = 10_000
    private static let longestPatience: Int64 = 120_000
    /// Milliseconds that this machine has to be busy for before no more connections are asked for.
    private static let busyTime: Int64 = 300
    /// Milliseconds for which bytes that were kept back say that this machine sets the rate.
    private static let holdTime: Int64 = 1_500
    /// From this share on, a connection brings what the first one brought when it was alone.
    private static let undiminished = 0.7
    /// What fewer connections have to bring, as a share of what more of them did.
    private static let enough = 0.94
    /// Milliseconds for which a step back may turn out to have been one too many, and the share of the rate that has
    /// to be left.
    private static let probation: Int64 = 6_000
    private static let kept = 0.9
    /// What more connections have to bring.
    private static let worthwhile = 1.1
    /// What a trial may cost, as a share of the time that is left.
    private static let price = 0.045
    /// The rate as a share of the usual one below which more connections are tried.
    private static let fall = 0.65

    /// - Parameter lesson: what earlier downloads from the host taught.
    init(_ segments: Segments, lesson: LineLesson? = nil) {
        self.segments = segments
        self.lesson = lesson
        ceiling = segments.most
        if !segments.isAutomatic { target = segments.most }
    }

    /// Whether something is being tried, so that it is to be asked again soon.
    var isTrying: Bool {
        guard segments.isAutomatic, !isWaiting || target > 1 else { return false }
        if case .settled = phase { return false }
        return true
    }

    /// The host will not have more than `count` connections.
    mutating func limit(to count: Int) {
        ceiling = max(1, min(ceiling, count))
        target = min(target, ceiling)
    }

    /// The host has no room for more than `count` connections now.
    mutating func cap(to count: Int) {
        guard segments.isAutomatic, count < target else { return }
        target = max(1, count)
        isWaiting = true
    }

    /// - Returns: ``target``.
    mutating func look(_ sight: LineSight) -> Int {
        guard segments.isAutomatic else { return target }
        if sight.isHeld { heldUntil = sight.now + Self.holdTime }
        isWaiting = false
        if sight.now < heldUntil {
            standStill(sight)
            return target
        }
        history.note(sight.received, at: sight.now)
        if sight.lesson != lesson, let taught = sight.lesson { learn(taught, sight) }
        if sight.isBusy { busySince = busySince ?? sight.now } else { busySince = nil }
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
    private mutating func standStill(_ sight: LineSight) {
        history.removeAll()
        usual = nil
        trimmed = nil
        if case .beginning = phase { isWaiting = true } else { settle(sight) }
    }

    /// Another download from the host has found something out.
    private mutating func learn(_ taught: LineLesson, _ sight: LineSight) {
        lesson = taught
        if case .beginning = phase { return }
        settle(sight)
        others = -1
    }

    // MARK: Growing

    private mutating func begin(_ sight: LineSight) {
        guard let first = sight.connections.first, first.received > 0 else { return }
        let begun = self.begun ?? sight.now
        if self.begun == nil {
            self.begun = begun
            levelSince = sight.now
        }
        if sight.others == 0 { alone.note(first.received, age: first.age) }
        if let busySince {
            if sight.now - busySince >= Self.busyTime { settle(sight) }
            return
        }
        guard sight.mayTry else {
            isWaiting = true
            return
        }
        switch lesson {
        case .each:
            change(to: ceiling, sight)
            return settle(sight)
        case .shared(let connections, let rate):
            change(to: max(1, connections - sight.others), sight)
            settle(sight)
            usual = rate
            return
        case nil: break
        }
        let age = max(first.age, sight.now - begun)
        guard age >= Self.firstTime, sight.now - begun >= Self.interval else { return }
        grow(sight)
    }

    /// Takes the next step up, as far as there is work for it.
    private mutating func grow(_ sight: LineSight) {
        let recent = history.measure(from: sight.now - 1000, to: sight.now, shortest: 1)
        let seconds = (recent?.rate ?? 0) > 0 ? Double(sight.left) / (recent?.rate ?? 1) : .infinity
        guard target < ceiling, seconds > 0.3 + 2 * Double(sight.setUp) / 1000 else {
            return target > 1 ? watch(from: sight) : settle(sight)
        }
        phase = .climbing(step(sight))
        change(to: min(ceiling, target * Self.factor), sight)
    }

    private func step(_ sight: LineSight, before: ReceivedHistory.Measure? = nil) -> Step {
        Step(
            from: target, since: sight.now, newest: sight.connections.map(\.number).max() ?? 0, before: before,
            others: sight.others)
    }

    /// Notes which of the connections that a step added have answered.
    private mutating func note(_ step: inout Step, _ sight: LineSight) {
        let added = sight.connections.count { $0.number > step.newest }
        if step.from == 1, added == 0, sight.others == 0, let first = sight.connections.first {
            alone.note(first.received, age: first.age)
        }
        if step.first == nil, added > 0 {
            step.first = sight.now
            step.before = step.before ?? history.measure(from: levelSince, to: sight.now)
            if let before = step.before { levels[step.from + step.others] = before }
        }
        if step.joined == nil, 4 * added >= 3 * (target - step.from) {
            step.joined = sight.now
            levelSince = sight.now
        }
    }

    private mutating func climb(_ old: Step, _ sight: LineSight) {
        var step = old
        note(&step, sight)
        phase = .climbing(step)
        let waited = sight.now - step.since
        guard target > step.from else { return target > 1 ? watch(from: sight) : settle(sight) }
        guard let joined = step.joined else {
            if busySince == nil, sight.mayTry, target < ceiling, waited >= Self.answerTime {
                grow(sight)
            } else if waited >= 3_000 + 4 * sight.setUp {
                watch(from: sight)
            }
            return
        }
        let share = median(of: sight.connections.filter { $0.number > step.newest }.compactMap { shares[$0.number] })
        if let share, share >= Self.undiminished, busySince == nil { return goOn(sight) }
        let age = sight.now - joined
        if let before = step.before, let after = history.measure(from: joined + 30, to: sight.now),
            age >= Self.youth(sight), step.others == sight.others, !before.isBursty, !after.isBursty, (share ?? 0) < 0.6
        {
            let full = Double(target + step.others) / Double(step.from + step.others)
            let gain = after.rate / before.rate
            if gain * (1 + before.error + after.error) < 1 + 0.4 * (full - 1) {
                levels[target + step.others] = after
                let need = Int((Double(step.from + step.others) * max(1, gain) * 1.02).rounded(.up)) - step.others
                return trim(to: max(step.from, min(target - 1, need)), after, sight)
            }
        }
        guard age >= Self.stepTime else { return }
        if busySince == nil { goOn(sight) } else { watch(from: sight) }
    }

    private mutating func goOn(_ sight: LineSight) {
        if target < ceiling, sight.mayTry { grow(sight) } else { watch(from: sight) }
    }

    /// More connections are tried on a line that has been watched for long.
    private mutating func probe(_ recent: ReceivedHistory.Measure, _ sight: LineSight) {
        phase = .probing(step(sight, before: recent))
        change(to: min(ceiling, target * Self.factor), sight)
    }

    private mutating func probe(_ old: Step, _ sight: LineSight) {
        var step = old
        note(&step, sight)
        phase = .probing(step)
        guard let before = step.before, target > step.from, step.others == sight.others else {
            change(to: step.from, sight)
            return settle(sight)
        }
        guard let joined = step.joined else {
            if sight.now - step.since >= 3_000 + 4 * sight.setUp {
                change(to: step.from, sight)
                settle(sight)
            }
            return
        }
        guard let after = history.measure(from: joined + Self.youth(sight), to: sight.now, shortest: 300) else {
            return
        }
        let isBursty = before.isBursty || after.isBursty
        let gain = after.rate / max(1, before.rate)
        let error = gain * (before.error * before.error + after.error * after.error).squareRoot()
        let isLate = after.duration >= (isBursty ? 4_000 : 1_500)
        guard isLate || after.duration >= (isBursty ? 2_000 : 300) else { return }
        let all = Double(step.from + step.others)
        if gain - 2 * error > Self.worthwhile {
            // It pays, and as much as that is worth is kept.
            let need = Int((all * gain * 1.02).rounded(.up)) - step.others
            usual = after.rate
            if need >= target * 3 / 4 {
                lesson = nil
                trimmed = nil
                if target < ceiling { return probe(after, sight) }
                lesson = .each
            } else {
                change(to: max(step.from, min(target, need)), sight)
                lesson = .shared(connections: target + step.others, rate: after.rate)
            }
            return settle(sight)
        }
        guard isLate || gain + 2 * error < Self.worthwhile else { return }
        change(to: step.from, sight)
        settle(sight)
    }

    // MARK: Measuring

    private mutating func watch(from sight: LineSight) {
        phase = .watching(since: sight.now, others: sight.others)
    }

    private mutating func watch(_ since: Int64, _ others: Int, _ sight: LineSight) {
        guard others == sight.others else { return watch(from: sight) }
        guard let measure = history.measure(from: since + Self.youth(sight), to: sight.now, shortest: 200) else {
            return
        }
        guard isEnough(measure, measure.error, isBursty: measure.isBursty, limit: 0.05) else { return }
        levels[target + others] = measure
        usual = measure.rate
        if isEach(measure, sight) {
            lesson = .each
            return settle(sight)
        }
        if target == 1 { return settle(sight) }
        let fewer = trialCount(measure, sight)
        if sight.mayTry, let fewer { trim(to: fewer, measure, sight) } else { settle(sight) }
    }

    /// Whether a rate was taken over long enough, for its error or for as long as one is waited for.
    private func isEnough(_ measure: ReceivedHistory.Measure, _ error: Double, isBursty: Bool, limit: Double) -> Bool {
        let shortest = isBursty ? 2_000 : 200.0
        let longest = thoroughness * (isBursty ? 4_000 : 1_500)
        return measure.duration >= longest || (measure.duration >= shortest && error < limit)
    }

    /// Whether each connection has a rate of its own, as far as the connections' first bytes show that.
    private func isEach(_ measure: ReceivedHistory.Measure, _ sight: LineSight) -> Bool {
        let newer = sight.connections.compactMap { shares[$0.number] }
        guard let share = median(of: newer), share >= Self.undiminished, 2 * newer.count >= target else { return false }
        if let even = alone.evenRate {
            return measure.rate >= 0.8 * even * Double(target + sight.others)
        }
        return measure.isBursty && alone.wasSilent(for: max(40, 2 * sight.setUp))
    }

    /// How many fewer connections are worth trying; `nil` where what is left is too little for it.
    private func trialCount(_ measure: ReceivedHistory.Measure, _ sight: LineSight) -> Int? {
        let all = target + sight.others
        let seconds = Double(sight.left) / max(1, measure.rate) * Double(all) / Double(target)
        // As few as brought as much already.
        let known = levels.filter {
            $0.key < all && !$0.value.isBursty && $0.value.error < 0.2 && $0.value.rate >= 0.9 * measure.rate
        }.keys.min()
        if let known, !measure.isBursty, !hasSavings { return max(1, known - sight.others) }
        let length = measure.isBursty || hasSavings ? 3.0 : min(1.5, max(0.3, measure.error * 20))
        let trial = thoroughness * length + 3 * Double(sight.setUp) / 1000
        // Where a step back has cost nothing, the next one is not expected to.
        let price = trimmed == nil ? Self.price : 2.5 * Self.price
        for count in [target / 2, target * 3 / 4] where count >= 1 && count < target {
            if trial * Double(target - count) / Double(target) <= price * seconds { return count }
        }
        return nil
    }

    // MARK: Giving back

    private mutating func trim(to count: Int, _ before: ReceivedHistory.Measure, _ sight: LineSight) {
        phase = .trimming(step(sight, before: before))
        change(to: count, sight)
    }

    private mutating func trim(_ step: Step, _ sight: LineSight) {
        guard let before = step.before, step.others == sight.others else {
            change(to: step.from, sight)
            return watch(from: sight)
        }
        let from = step.since + 50 + Self.youth(sight)
        guard let after = history.measure(from: from, to: sight.now, shortest: 100) else { return }
        let isBursty = before.isBursty || after.isBursty
        let share = after.rate / before.rate
        let error = share * (before.error * before.error + after.error * after.error).squareRoot()
        let full = Double(target + step.others) / Double(step.from + step.others)
        let pays = share >= Self.enough - min(error, 0.12) && share - error >= (1 + full) / 2
        let isLoss = share + 2 * error < (after.duration < 1_200 ? (1 + full) / 2 : Self.enough)
        let isSure = share - error >= Self.enough || isLoss || (pays && error < 0.08)
        if share - 2 * error > 1.3 {
            // The line has changed meanwhile.
            change(to: step.from, sight)
            isDoubtful = true
            return settle(sight)
        }
        if after.isBursty, !before.isBursty {
            // What the server had saved up for each connection is used up.
            hasSavings = true
            if after.duration >= 1_050, share + 0.15 < (1 + full) / 2 {
                isDoubtful = false
                return goBack(step, share: share, error: 0.05 * share, sight)
            }
        }
        guard isEnough(after, isSure ? 0 : 1, isBursty: isBursty || hasSavings, limit: 0.5) else { return }
        if pays {
            levels[target + step.others] = after
            lesson = .shared(connections: target + step.others, rate: before.rate)
            trimmed = step
            trimmed?.since = sight.now
            guard target > 1, let fewer = trialCount(after, sight) else { return settle(sight) }
            // All are held to what the greatest number brought.
            var next = step
            next.since = sight.now
            change(to: min(fewer, max(1, target / 2)), sight)
            phase = .trimming(next)
            return
        }
        isDoubtful = !hasSavings && (!isLoss || (error > 0.06 && share > 1.25 * full))
        goBack(step, share: share, error: error, sight)
    }

    /// Too few connections were left: as many are taken as that shows to be needed.
    private mutating func goBack(_ step: Step, share: Double, error: Double, _ sight: LineSight) {
        let need = Int((Double(target + step.others) / max(0.01, share - min(error, 0.2 * share)) * 1.05).rounded(.up)) - step.others
        let back = max(min(step.from, max(target + 1, need)), target)
        let isEach = back >= step.from - max(1, step.from / 8)
        change(to: isEach ? step.from : back, sight)
        lesson =
            isEach && step.from >= ceiling
            ? .each : .shared(connections: target + step.others, rate: step.before?.rate ?? 0)
        trimmed = nil
        settle(sight)
        usual = step.before?.rate
    }

    // MARK: Resting

    private mutating func settle(_ sight: LineSight) {
        phase = .settled(since: sight.now, until: sight.now + patience)
        others = sight.others
    }

    /// Goes by what is known where other downloads have come or gone.
    private mutating func adapt(_ sight: LineSight) {
        guard sight.mayTry else { return }
        defer { others = sight.others }
        switch lesson {
        case .each: change(to: ceiling, sight)
        case .shared(let connections, _):
            if target + sight.others < connections || others != sight.others {
                change(to: max(1, connections - sight.others), sight)
            }
        case nil:
            // What another one has given back by its end is free.
            if others > sight.others { change(to: target + others - sight.others, sight) }
        }
    }

    private mutating func rest(_ since: Int64, _ until: Int64, _ sight: LineSight) {
        adapt(sight)
        let young = max(since, levelSince) + Self.youth(sight) + 200
        guard let recent = history.measure(from: max(young, sight.now - 3_000), to: sight.now, shortest: 1_000) else {
            return
        }
        if recent.isBursty, recent.duration < 2_900 { return }
        guard let usual else {
            if recent.duration > 1_900 { usual = recent.rate }
            return
        }
        let last = recent.isBursty ? recent : history.measure(from: sight.now - 1_000, to: sight.now) ?? recent
        guard busySince == nil, sight.mayTry else { return }
        if let step = trimmed, let before = step.before, sight.now - step.since < Self.probation, step.others == sight.others {
            // What a server had saved up for its connections may have hidden that there are too few.
            let share = recent.rate / before.rate
            let error = share * (before.error * before.error + recent.error * recent.error).squareRoot()
            if share + 2 * error < Self.kept {
                thoroughness = min(8, 2 * thoroughness)
                isDoubtful = !hasSavings
                return goBack(step, share: share, error: error, sight)
            }
        }
        if last.rate < Self.fall * usual, sight.now >= probeFrom {
            probeFrom = sight.now + 3_000
            self.usual = last.rate
            trimmed = nil
            thoroughness = 1
            if target < ceiling { probe(last, sight) }
            return
        }
        if last.rate > 1.4 * usual, sight.now >= probeFrom {
            probeFrom = sight.now + 3_000
            self.usual = last.rate
            trimmed = nil
            thoroughness = 1
            if target > 1, lesson != .each { watch(from: sight) }
            return
        }
        let seconds = Double(sight.left) / max(1, recent.rate)
        if isDoubtful, target > 1, sight.now >= since + 2_000, thoroughness < 8 {
            isDoubtful = false
            thoroughness *= 2
            levels = [:]
            return watch(from: sight)
        }
        guard sight.now >= until else { return }
        patience = min(Self.longestPatience, 2 * patience)
        isNextProbe.toggle()
        if target < ceiling, seconds > 4, !isNextProbe || target == 1 {
            probe(recent, sight)
        } else if target > 1, lesson != .each {
            levels = [:]
            watch(from: sight)
        } else {
            settle(sight)
        }
    }

    // MARK: The ground of it

    private mutating func change(to count: Int, _ sight: LineSight) {
        let count = max(1, min(ceiling, count))
        guard count != target else { return }
        target = count
        levelSince = sight.now
    }

    /// Milliseconds that a connection is too young for to be compared with a line that was filled.
    private static func youth(_ sight: LineSight) -> Int64 { 100 + 2 * sight.setUp }

    private func median(of values: [Double]) -> Double? {
        values.isEmpty ? nil : values.sorted()[values.count / 2]
    }
}
