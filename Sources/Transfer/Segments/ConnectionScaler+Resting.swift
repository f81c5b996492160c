/// The time between trials. A changed rate starts the next trial.
extension ConnectionScaler {
    mutating func settle(_ sight: PathObservation) {
        phase = .settled(since: sight.now, until: sight.now + trialInterval)
        others = sight.others
        isWaiting = mayGrowLater(sight)
    }

    /// Applies the current capacity after other downloads have started or ended.
    mutating func adapt(_ sight: PathObservation) {
        guard sight.mayTry else { return }
        defer { others = sight.others }
        switch capacity {
        case .each: change(to: ceiling, sight)
        case .shared(let connections, _):
            if target + sight.others < connections || others != sight.others {
                change(to: max(1, connections - sight.others), sight)
            }
        case nil:
            // Connections released by a download that ended are available.
            if others > sight.others { change(to: target + others - sight.others, sight) }
        }
    }

    /// Returns whether more connections may be useful once another download releases some or ends.
    func mayGrowLater(_ sight: PathObservation) -> Bool {
        if case .shared(let connections, _) = capacity { return sight.others > 0 && target < min(ceiling, connections) }
        return target < ceiling && (sight.others > 0 || untriedAbove == target || hasNewRoom(sight))
    }

    mutating func rest(_ since: Int64, _ until: Int64, _ sight: PathObservation) {
        adapt(sight)
        isWaiting = mayGrowLater(sight)
        if capacity == nil, sight.mayTry, busySince == nil, target < ceiling {
            if hasNewRoom(sight) || untriedAbove == target, hasWork(sight) { return grow(sight) }
        }
        let young = max(since, levelSince) + Self.warmUp(sight) + 200
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
        if let step = trimmed, let before = step.before, sight.now - step.since < Self.probation,
            step.others == sight.others
        {
            // A burst allowance of the server may have hidden that there are too few connections.
            let share = recent.rate / before.rate
            let error = share * (before.error * before.error + recent.error * recent.error).squareRoot()
            if share + 2 * error < Self.kept {
                thoroughness = min(8, 2 * thoroughness)
                isDoubtful = !hasSavings
                return requestOwnURL(step, share: share, error: error, sight)
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
            if target > 1, capacity != .each { watch(from: sight) }
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
        trialInterval = min(Self.longestTrialInterval, 2 * trialInterval)
        isNextProbe.toggle()
        if target < ceiling, seconds > 4, isNextProbe || target == 1 {
            probe(recent, sight)
        } else if target > 1, capacity != .each {
            levels = [:]
            watch(from: sight)
        } else {
            settle(sight)
        }
    }
}
