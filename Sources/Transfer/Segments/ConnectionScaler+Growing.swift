/// Increases of the number of connections: fast at first, later to detect a line whose bandwidth has grown.
extension ConnectionScaler {
    mutating func begin(_ sight: PathObservation) {
        guard let first = sight.connections.first, first.received > 0 else { return }
        let begun = self.begun ?? sight.now
        if self.begun == nil {
            self.begun = begun
            levelSince = sight.now
        }
        alone.record(first.received, age: first.age, beside: sight.others)
        if let busySince {
            if sight.now - busySince >= Self.busyTime { settle(sight) }
            return
        }
        guard sight.mayTry else {
            isWaiting = true
            return
        }
        switch capacity {
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

    /// Takes the next step up, if there is work for more connections.
    mutating func grow(_ sight: PathObservation) {
        guard target < ceiling, hasWork(sight) else { return target > 1 ? watch(from: sight) : settle(sight) }
        untriedAbove = nil
        cappedBeside = nil
        phase = .climbing(step(sight))
        change(to: min(ceiling, target * Self.factor), sight)
    }

    /// Returns whether the remaining bytes take long enough for more connections to matter, and records the number if
    /// they do not.
    mutating func hasWork(_ sight: PathObservation) -> Bool {
        let recent = history.measure(from: sight.now - 1000, to: sight.now, shortest: 1)
        let isLong = secondsLeft(at: recent?.rate ?? 0, sight) > 0.3 + 2 * Double(sight.setUp) / 1000
        if !isLong { untriedAbove = target }
        return isLong
    }

    /// Returns whether the host had no room for more connections of this download and other downloads have released
    /// some since.
    func hasNewRoom(_ sight: PathObservation) -> Bool { cappedBeside.map { sight.others < $0 } ?? false }

    /// Returns the seconds that the remaining bytes take at this download's share of the throughput of all downloads
    /// from the host.
    func secondsLeft(at rate: Double, _ sight: PathObservation) -> Double {
        guard rate > 0 else { return .infinity }
        return Double(sight.left) / rate * Double(target + sight.others) / Double(max(1, target))
    }

    func step(_ sight: PathObservation, before: ReceivedHistory.Measure? = nil) -> Step {
        Step(
            from: target, since: sight.now, measuredFrom: levelSince,
            newest: sight.connections.map(\.number).max() ?? 0, before: before,
            others: sight.others)
    }

    /// Records the first response of the connections that a step added.
    mutating func record(_ step: inout Step, _ sight: PathObservation) {
        let added = sight.connections.count { $0.number > step.newest }
        if step.from == 1, added == 0, let first = sight.connections.first {
            alone.record(first.received, age: first.age, beside: sight.others)
        }
        if step.first == nil, added > 0 {
            step.first = sight.now
            step.before = step.before ?? history.measure(from: step.measuredFrom, to: sight.now)
            if let before = step.before { levels[step.from + step.others] = before }
        }
        if step.joined == nil, 4 * added >= 3 * (target - step.from) {
            step.joined = sight.now
            levelSince = sight.now
        }
    }

    mutating func climb(_ old: Step, _ sight: PathObservation) {
        var step = old
        record(&step, sight)
        phase = .climbing(step)
        let waited = sight.now - step.since
        guard target > step.from else {
            if hasNewRoom(sight), sight.mayTry, busySince == nil { return grow(sight) }
            return target > 1 ? watch(from: sight) : settle(sight)
        }
        guard let joined = step.joined else {
            if busySince == nil, sight.mayTry, target < ceiling, waited >= Self.answerTime {
                grow(sight)
            } else if waited >= 3_000 + 4 * sight.setUp {
                watch(from: sight)
            }
            return
        }
        let share = median(of: sight.connections.filter { $0.number > step.newest }.compactMap { shares[$0.number] })
        if let share, share >= smallestClaim(sight), busySince == nil { return resume(sight) }
        let age = sight.now - joined
        if let before = step.before, let after = history.measure(from: joined + 30, to: sight.now),
            age >= Self.warmUp(sight), step.others == sight.others, !before.isBursty, !after.isBursty,
            (share ?? 0) < 0.6
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
        if busySince == nil { resume(sight) } else { watch(from: sight) }
    }

    mutating func resume(_ sight: PathObservation) {
        if target < ceiling, sight.mayTry { grow(sight) } else { watch(from: sight) }
    }

    /// Tries more connections on a line that has been settled for a long time.
    mutating func probe(_ recent: ReceivedHistory.Measure, _ sight: PathObservation) {
        phase = .probing(step(sight, before: recent))
        change(to: min(ceiling, target * Self.factor), sight)
    }

    mutating func probe(_ old: Step, _ sight: PathObservation) {
        var step = old
        record(&step, sight)
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
        guard let after = history.measure(from: joined + Self.warmUp(sight), to: sight.now, shortest: 300) else {
            return
        }
        let isBursty = before.isBursty || after.isBursty
        let gain = after.rate / max(1, before.rate)
        let error = gain * (before.error * before.error + after.error * after.error).squareRoot()
        let isLate = after.duration >= (isBursty ? 4_000 : 1_500)
        guard isLate || after.duration >= (isBursty ? 2_000 : 300) else { return }
        let all = Double(step.from + step.others)
        if gain - error > Self.worthwhile {
            // The increase pays off. As many connections are kept as the gain is worth.
            let need = Int((all * gain * 1.02).rounded(.up)) - step.others
            usual = after.rate
            if need >= target * 3 / 4 {
                trimmed = nil
                if target < ceiling { return probe(after, sight) }
                capacity = .each
            } else {
                change(to: max(step.from, min(target, need)), sight)
                capacity = .shared(connections: target + step.others, rate: after.rate)
            }
            return settle(sight)
        }
        guard isLate || gain + 2 * error < Self.worthwhile else { return }
        change(to: step.from, sight)
        settle(sight)
    }
}
