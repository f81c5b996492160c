/// The evaluation of the throughput of a number of connections.
extension ConnectionScaler {
    mutating func watch(from sight: PathObservation) {
        phase = .watching(since: sight.now, others: sight.others)
    }

    mutating func watch(_ since: Int64, _ others: Int, _ sight: PathObservation) {
        // The remaining bytes take longer than expected, or the host has room again.
        if untriedAbove == target || hasNewRoom(sight), target < ceiling, busySince == nil, sight.mayTry,
            hasWork(sight)
        {
            return grow(sight)
        }
        guard others == sight.others else { return watch(from: sight) }
        guard let measure = history.measure(from: since + Self.warmUp(sight), to: sight.now, shortest: 200) else {
            return
        }
        if others > 0 {
            // The other downloads cannot try anything until this measurement ends.
            if measure.isBursty, isEach(measure, sight) {
                capacity = .each
                return settle(sight)
            }
            let time = measure.isBursty ? 2.0 : 0.5
            if secondsLeft(at: measure.rate, sight) < time - measure.duration / 1000 { return settle(sight) }
        }
        guard isEnough(measure, measure.error, isBursty: measure.isBursty, limit: 0.05) else { return }
        guard measure.rate > 0 else { return watch(from: sight) }
        levels[target + others] = measure
        usual = measure.rate
        if isEach(measure, sight) {
            capacity = .each
            return settle(sight)
        }
        if target == 1 { return settle(sight) }
        let fewer = trialCount(measure, sight)
        if sight.mayTry, let fewer { trim(to: fewer, measure, sight) } else { settle(sight) }
    }

    /// Returns whether a rate was measured for long enough: until its error is small, or for the longest time allowed.
    func isEnough(_ measure: ReceivedHistory.Measure, _ error: Double, isBursty: Bool, limit: Double) -> Bool {
        let shortest = isBursty ? 2_000 : 200.0
        let longest = thoroughness * (isBursty ? 4_000 : 1_500)
        return measure.duration >= longest || (measure.duration >= shortest && error < limit)
    }

    /// Returns whether each connection has a rate of its own, judging by the connections' first bytes.
    func isEach(_ measure: ReceivedHistory.Measure, _ sight: PathObservation) -> Bool {
        let newer = sight.connections.compactMap { shares[$0.number] }
        guard let share = median(of: newer), share >= smallestClaim(sight), 2 * newer.count >= target else {
            return false
        }
        if let even = alone.evenRate {
            return measure.rate >= 0.8 * even * Double(target + sight.others)
        }
        return measure.isBursty && alone.wasSilent(for: max(40, 2 * sight.setUp))
    }

    /// Returns the share of the first connection's throughput from which on a newer connection is not slowed down by
    /// the others.
    ///
    /// If other downloads had connections, the first connection had only a share of a shared line. The threshold is
    /// then higher.
    func smallestClaim(_ sight: PathObservation) -> Double {
        let shared = Double(1 + alone.others) / Double(target + sight.others)
        return alone.others == 0 ? Self.undiminished : max(Self.undiminished, (1 + shared) / 2)
    }

    /// Returns the reduced number of connections worth trying; `nil` if too few bytes are left for a trial.
    func trialCount(_ measure: ReceivedHistory.Measure, _ sight: PathObservation) -> Int? {
        let all = target + sight.others
        let seconds = Double(sight.left) / max(1, measure.rate) * Double(all) / Double(target)
        // The smallest number of connections that is known to reach about the same rate.
        let known = levels.filter {
            $0.key < all && !$0.value.isBursty && $0.value.error < 0.2 && $0.value.rate >= 0.9 * measure.rate
        }.keys.min()
        if let known, !measure.isBursty, !hasSavings { return max(1, known - sight.others) }
        let length = measure.isBursty || hasSavings ? 3.0 : min(1.5, max(0.3, measure.error * 20))
        let trial = thoroughness * length + 3 * Double(sight.setUp) / 1000
        // If an earlier decrease has cost no throughput, the next one is expected to cost none either, so a trial may
        // take longer.
        let newer = median(of: sight.connections.compactMap { shares[$0.number] }) ?? 1
        let price = trimmed != nil ? 2.5 * Self.price : newer < 0.3 ? 2 * Self.price : Self.price
        for count in [target / 2, target * 3 / 4] where count >= 1 && count < target {
            if trial * Double(target - count) / Double(target) <= price * seconds { return count }
        }
        return nil
    }
}
