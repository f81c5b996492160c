import Testing

@testable import TaskQueue

@Suite("The course of a run")
struct RunLifecycleTests {
    private enum Event: String, CaseIterable {
        case pause, cancel, remove, release, checkpointFailed, end, set, storeRefused
    }

    private static let result = RunLifecycle.Result(keptBytes: 7, neverBegan: true)

    private static func apply(_ event: Event, _ run: inout RunLifecycle) -> String {
        switch event {
        case .pause: return run.stop(.pause) ? "cancel" : "-"
        case .cancel: return run.stop(.cancel) ? "cancel" : "-"
        case .remove: return run.stop(.remove) ? "cancel" : "-"
        case .release: return run.stop(.release) ? "cancel" : "-"
        case .checkpointFailed: run.checkpointFailed()
        case .end: return run.end() ? "record" : "-"
        case .set: run.set(result)
        case .storeRefused: run.storeRefused()
        }
        return "-"
    }

    private static func words(_ run: RunLifecycle) -> String {
        let order = run.order.map { " \($0)" } ?? ""
        let result = run.result == Self.result ? " with result" : ""
        return switch run.phase {
        case .running: "running"
        case .stopping: "stopping\(order)"
        case .recording: "recording\(order)\(result)"
        case .refused: "refused\(order)\(result)"
        }
    }

    private static func run(_ events: [Event]) -> RunLifecycle {
        var run = RunLifecycle()
        for event in events { _ = apply(event, &run) }
        return run
    }

    /// Every event in every phase: the action, and the phase that follows.
    private static let table: [(events: [Event], expected: [String])] = [
        (
            [],
            [
                "cancel, stopping pause", "cancel, stopping cancel", "cancel, stopping remove",
                "cancel, stopping release", "-, stopping release", "record, recording", "-, running", "-, running",
            ]
        ),
        (
            [.pause],
            [
                "cancel, stopping pause", "cancel, stopping cancel", "cancel, stopping remove",
                "cancel, stopping pause", "-, stopping pause", "record, recording pause", "-, stopping pause",
                "-, stopping pause",
            ]
        ),
        (
            [.cancel],
            [
                "cancel, stopping cancel", "cancel, stopping cancel", "cancel, stopping remove",
                "cancel, stopping cancel", "-, stopping cancel", "record, recording cancel", "-, stopping cancel",
                "-, stopping cancel",
            ]
        ),
        (
            [.release, .end],
            [
                "-, recording release", "-, recording release", "-, recording release", "-, recording release",
                "-, recording release", "-, recording release", "-, recording release with result",
                "-, refused release",
            ]
        ),
        (
            [.end, .set, .storeRefused],
            [String](repeating: "-, refused with result", count: 8)
        ),
    ]

    @Test("every event in every phase", arguments: table.indices)
    func transitions(_ index: Int) {
        let (events, expected) = Self.table[index]
        let found = Event.allCases.map { event in
            var run = Self.run(events)
            let action = Self.apply(event, &run)
            return "\(action), \(Self.words(run))"
        }
        #expect(found == expected)
    }

    @Test("under all orders of six events, a run ends once and no order weakens another")
    func allOrders() {
        func explore(_ run: RunLifecycle, _ depth: Int) {
            guard depth > 0 else { return }
            for event in Event.allCases {
                var next = run
                let action = Self.apply(event, &next)
                #expect(!run.hasEnded || next.hasEnded)
                #expect(!run.hasEnded || action == "-")
                #expect(run.order == nil || next.order != nil)
                if let order = run.order, [.cancel, .remove].contains(order) {
                    #expect(next.order == .cancel || next.order == .remove)
                }
                explore(next, depth - 1)
            }
        }
        explore(RunLifecycle(), 5)
    }

    @Test("a lookup is followed by the download unless the run is ordered to end")
    func afterLookup() {
        #expect(Self.run([]).afterLookup == .download)
        #expect(Self.run([.pause]).afterLookup == .stop)
        #expect(Self.run([.end]).afterLookup == .none)
    }

    @Test("a caller waits for the result until the store refuses it")
    func waiting() {
        #expect(!Self.run([]).isAboutToEnd)
        #expect(Self.run([.pause]).isAboutToEnd)
        #expect(Self.run([.end]).isAboutToEnd)
        #expect(!Self.run([.end, .storeRefused]).isAboutToEnd)
    }
}
