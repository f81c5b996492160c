import TestSupport

@testable import Transfer

/// A download under one lie, replayed as events through the state machines, in an order that the seed determines.
struct MisbehavingServerReplay: CustomStringConvertible {
    let lie: Lie
    let segments: Segments
    let life: Lie.Life
    let seed: UInt64

    /// The number of events after which a download is taken for an endless one.
    private static let mostEvents = 5_000
    private static let policy = RetryPolicy(attempts: 8, baseDelay: 10, maximumDelay: 500)

    var description: String {
        "\(lie.testDescription), \(segments.isAutomatic ? "automatic" : "\(segments.most)"), \(life.rawValue), seed \(seed)"
    }

    /// Returns the replays of every life and number of connections. The events of a single connection have hardly more
    /// than one order, so that one seed is enough for them.
    static func all(of lie: Lie, seeds: Range<UInt64>) -> [MisbehavingServerReplay] {
        lie.lives.flatMap { life in
            lie.connections.flatMap { segments in
                seeds.prefix(segments.most > 1 ? seeds.count : 1)
                    .map { MisbehavingServerReplay(lie: lie, segments: segments, life: life, seed: $0) }
            }
        }
    }

    /// The outcome, and the events that led to it.
    struct Outcome {
        var verdict: Verdict
        /// Each event as a word, and each end of an attempt in brackets.
        var events: [String] = []
    }

    func run() -> Outcome {
        let server = MisbehavingServer(withoutSockets: lie.ports, answering: lie.before)
        var (leftover, events): (ModelLeftover, [String]) = (ModelLeftover(), [])
        leftover.generator = SeededGenerator(seed: seed &* 1_000)
        var generator = SeededGenerator(seed: seed)
        if life == .resumed {
            var model = model(server, after: leftover)
            model.allowance = lie.earlierBytes ?? .max
            if let verdict = play(&model, &events, &generator) { return Outcome(verdict: verdict, events: events) }
            leftover = model.leftover
            guard leftover.part.count > 0 else { return Outcome(verdict: .wrong("no earlier part"), events: events) }
            leftover.network.closeAll()
        }
        let before = server.requests.count
        server.turn(to: lie.answering(server))
        let verdict = attempt(server, after: leftover, &events, &generator)
        let requests = server.requests.count - before
        return Outcome(verdict: requests > lie.mostRequests ? .wrong("\(requests) requests") : verdict, events: events)
    }

    private func model(_ server: MisbehavingServer, after leftover: ModelLeftover) -> DownloadModel {
        let known = MisbehavingServerDigestTests.known
        var settings = DownloadModel.Settings(versions: lie.versions)
        settings.url = server.url(lie.path)
        settings.segments = segments
        settings.digest = lie.digest.flatMap { digest in known.first { $0.digest == digest } }
        settings.statedDigests = known
        settings.chunk = [1 << 20, 3 << 20, 300_000][Int(seed % 3)]
        return DownloadModel(settings, servers: [.misbehaving(server)], after: leftover)
    }

    /// Replays attempts until one finishes or a retry is pointless, as ``DefaultRetrier`` decides.
    private func attempt(
        _ server: MisbehavingServer, after leftover: ModelLeftover, _ events: inout [String],
        _ generator: inout SeededGenerator
    ) -> Verdict {
        var (leftover, record) = (leftover, RetryRecord())
        for attempt in 0... {
            var model = model(server, after: leftover)
            if let verdict = play(&model, &events, &generator) { return verdict }
            guard let error = model.error else { return .right }
            leftover = model.leftover
            record.fail(kept: leftover.part.count, attempt: attempt)
            guard [.soon, .whenNetworkChanges, .whenSystemRecovers].contains(RetryClass(error)),
                record.failures < Self.policy.attempts
            else { return lie.failures.contains(error.code) ? .failed(error.code) : .wrong("\(error)") }
            leftover.now += Self.policy.delay(
                failures: record.failures, retryAfter: error.retryAfter, using: &generator)
        }
        return .stuck
    }

    /// Plays one attempt to its end.
    ///
    /// - Returns: `nil` if it ended as it may.
    private func play(
        _ model: inout DownloadModel, _ events: inout [String], _ generator: inout SeededGenerator
    ) -> Verdict? {
        if let violation = model.violation { return .wrong(violation) }
        while model.result == nil {
            let possible = model.possibleEvents.filter { if case .breakOff = $0 { false } else { true } }
            guard !possible.isEmpty, events.count < Self.mostEvents else { return .stuck }
            let event = possible[Int.random(in: 0..<possible.count, using: &generator)]
            events.append(event.description)
            model.happen(event, after: .random(in: 1...400, using: &generator))
            if let violation = model.violation { return .wrong(violation) }
        }
        events.append("[\(model.error?.code.rawValue ?? "finished")]")
        return nil
    }
}
