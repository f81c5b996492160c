import TestSupport
import Testing

@testable import Transfer

/// Downloads as values, under random orders of events and, for small ones, under all orders.
@Suite("A download's state machine under every order of events")
struct DownloadModelTests {
    private static func draw<Element>(_ choices: [Element], _ generator: inout SeededGenerator) -> Element {
        choices[Int.random(in: 0..<choices.count, using: &generator)]
    }

    /// Runs a model to its end under random orders.
    ///
    /// - Parameters:
    ///   - isReliable: whether no connection breaks.
    ///   - mishap: changes the servers before an event.
    private func run(
        _ model: inout DownloadModel, _ generator: inout SeededGenerator, isReliable: Bool,
        mishap: (inout DownloadModel, inout SeededGenerator) -> Void = { _, _ in }
    ) {
        var trail: [ModelEvent] = []
        for step in 0..<4_000 where model.result == nil {
            mishap(&model, &generator)
            var events = model.possibleEvents
            // From some step on the network is reliable, so that every run ends.
            if isReliable || step > 400
                || trail.suffix(6).contains(where: { if case .breakOff = $0 { true } else { false } })
            {
                events.removeAll { if case .breakOff = $0 { true } else { false } }
            }
            guard !events.isEmpty else { break }
            let event = Self.draw(events, &generator)
            trail.append(event)
            model.happen(event, after: .random(in: 1...400, using: &generator))
            if let violation = model.violation {
                Issue.record("\(violation) after \(trail.suffix(12))")
                return
            }
        }
        if model.result == nil { Issue.record("no end after \(trail.count) events: \(trail.suffix(12))") }
    }

    @Test("an honest server's file is completed, and no byte of it is dropped", arguments: 0..<200)
    func honest(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var server = VersionedServer()
        server.largestResponse = Self.draw([.max, 3 << 20, 700_000], &generator)
        let segments: Segments = Self.draw([.one, .fixed(2), .fixed(4), .fixed(16), .automatic], &generator)
        let size = Int64.random(in: 1..<(40 << 20), using: &generator)
        var model = DownloadModel(
            size: size, segments: segments, servers: [server],
            chunk: Self.draw([1 << 20, 300_000, 5 << 20], &generator))
        model.room = Self.draw([.max, 1, 3], &generator)
        run(&model, &generator, isReliable: true)
        #expect(model.result == .finished)
        #expect(model.restarts.isEmpty)
        #expect(model.received <= size + Int64(model.requests) * model.settings.chunk)
    }

    @Test("connections that break cost no complete byte", arguments: 0..<200)
    func broken(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(1_000 + seed))
        let segments: Segments = Self.draw([.fixed(2), .fixed(4), .automatic], &generator)
        var model = DownloadModel(size: .random(in: (1 << 20)..<(60 << 20), using: &generator), segments: segments)
        run(&model, &generator, isReliable: false)
        #expect(model.restarts.isEmpty)
        // The connection breaks before the head, or within the body.
        #expect([.finished, .failed(.cannotConnect), .failed(.truncated)].contains(model.result))
    }

    @Test("servers that change the file, refuse, or ignore ranges never lead to a mixed file", arguments: 0..<600)
    func dishonest(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(2_000 + seed))
        func server() -> VersionedServer {
            VersionedServer(
                version: Int.random(in: 1...2, using: &generator), sendsRanges: .random(using: &generator),
                hasEntityTag: .random(using: &generator), honoursIfRange: .random(using: &generator),
                largestResponse: Self.draw([.max, 2 << 20], &generator))
        }
        let servers = (0..<Self.draw([1, 1, 2, 3], &generator)).map { _ in server() }
        let digest: Int? = servers.count > 1 || .random(using: &generator) ? servers[0].version : nil
        let segments: Segments = Self.draw([.one, .fixed(3), .fixed(8), .automatic], &generator)
        var model = DownloadModel(
            size: .random(in: 1..<(24 << 20), using: &generator), segments: segments, servers: servers,
            digestVersion: digest)
        run(&model, &generator, isReliable: false) { model, generator in
            guard Int.random(in: 0..<12, using: &generator) == 0 else { return }
            let index = Int.random(in: 0..<model.servers.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: model.changeServer(index) { $0.version = 3 - $0.version }
            case 1:
                let refusal = Self.draw([503, 404, 403, 400, 501, 429], &generator)
                model.changeServer(index) { $0.refusal = refusal }
            case 2: model.changeServer(index) { $0.sendsRanges.toggle() }
            default: model.changeServer(index) { $0.refusal = nil }
            }
        }
    }

    /// Tries every order of events up to a depth, and runs each to its end in a fixed order.
    private func explore(_ model: DownloadModel, depth: Int, _ trail: [ModelEvent], _ count: inout Int) {
        if let violation = model.violation {
            Issue.record("\(violation) after \(trail)")
            return
        }
        guard depth > 0, model.result == nil else {
            count += 1
            var model = model
            for step in 0..<500 where model.result == nil {
                let events = model.possibleEvents.filter { if case .breakOff = $0 { false } else { true } }
                if events.isEmpty { break }
                model.happen(events[step % events.count], after: 300)
            }
            if let violation = model.violation { Issue.record("\(violation) in the end after \(trail)") }
            if model.result == nil { Issue.record("no end after \(trail)") }
            return
        }
        for event in model.possibleEvents {
            var next = model
            next.happen(event)
            explore(next, depth: depth - 1, trail + [event], &count)
        }
    }

    @Test(
        "all orders of the first events of a small download",
        arguments: [
            VersionedServer(), VersionedServer(hasEntityTag: false), VersionedServer(sendsRanges: false),
            VersionedServer(honoursIfRange: false), VersionedServer(largestResponse: 2 << 20),
        ])
    func exhaustive(server: VersionedServer) {
        var count = 0
        explore(
            DownloadModel(size: 8 << 20, segments: .fixed(2), servers: [server], chunk: 2 << 20), depth: 7, [], &count)
        explore(
            DownloadModel(
                size: 8 << 20, segments: .fixed(2), servers: [server, VersionedServer()], digestVersion: 1,
                chunk: 2 << 20),
            depth: 6, [], &count)
        #expect(count > 50)
    }
}
