/// Decreases of the number of connections. Each must leave the throughput unchanged.
extension ConnectionScaler {
    mutating func trim(to count: Int, _ before: ReceivedHistory.Measure, _ sight: PathObservation) {
        phase = .trimming(step(sight, before: before))
        change(to: count, sight)
    }

    mutating func trim(_ step: Step, _ sight: PathObservation) {
        guard let before = step.before, step.others == sight.others else {
            change(to: step.from, sight)
            return watch(from: sight)
        }
        let from = step.since + 50 + Self.warmUp(sight)
        guard let after = history.measure(from: from, to: sight.now, shortest: 100) else { return }
        let isBursty = before.isBursty || after.isBursty
        let share = after.rate / before.rate
        let error = share * (before.error * before.error + after.error * after.error).squareRoot()
        let full = Double(target + step.others) / Double(step.from + step.others)
        let pays = share >= Self.enough - min(error, 0.12) && share - error >= (1 + full) / 2
        // A server may send a burst for up to a second. Until then, only a loss far outside the error counts.
        let isEarlyLoss =
            share + 2 * error < (1 + full) / 2
            || (!isBursty && after.duration >= Self.earlyTime && share + 3 * error < Self.earlyLoss)
        let isLoss = after.duration < 1_200 ? isEarlyLoss : share + 2 * error < Self.enough
        let isSure = share - error >= Self.enough || isLoss || (pays && error < 0.08)
        if share - 2 * error > 1.3 {
            // The line has changed during the trial.
            change(to: step.from, sight)
            isDoubtful = true
            return settle(sight)
        }
        if after.isBursty, !before.isBursty {
            // The server's burst allowance for each connection is used up.
            hasSavings = true
            if after.duration >= 1_050, share + 0.15 < (1 + full) / 2 {
                isDoubtful = false
                return requestOwnURL(step, share: share, error: 0.05 * share, sight)
            }
        }
        guard isEnough(after, isSure ? 0 : 1, isBursty: isBursty || hasSavings, limit: 0.5) else { return }
        if pays {
            levels[target + step.others] = after
            capacity = .shared(connections: target + step.others, rate: before.rate)
            trimmed = step
            trimmed?.since = sight.now
            guard target > 1, let fewer = trialCount(after, sight) else { return settle(sight) }
            // Every decrease is compared with the throughput of the largest number.
            var next = step
            next.since = sight.now
            change(to: min(fewer, max(1, target / 2)), sight)
            phase = .trimming(next)
            return
        }
        isDoubtful = !hasSavings && (!isLoss || (error > 0.06 && share > 1.25 * full))
        requestOwnURL(step, share: share, error: error, sight)
    }

    /// Increases the number again after a decrease that cost throughput, to the number that the measured share
    /// requires.
    mutating func requestOwnURL(_ step: Step, share: Double, error: Double, _ sight: PathObservation) {
        let need =
            Int((Double(target + step.others) / max(0.01, share - min(error, 0.2 * share)) * 1.05).rounded(.up))
            - step.others
        let back = max(min(step.from, max(target + 1, need)), target)
        let isEach = back >= step.from - max(1, step.from / 8)
        change(to: isEach ? step.from : back, sight)
        capacity =
            isEach && (step.from >= ceiling || cappedBeside == step.others)
            ? .each : .shared(connections: target + step.others, rate: step.before?.rate ?? 0)
        trimmed = nil
        settle(sight)
        usual = step.before?.rate
    }
}
