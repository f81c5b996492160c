import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("The state machine and what is stored of it")
struct RandomWalkTests {
    /// The events that the scheduler may report at the end of a run.
    private static let endings: [TaskLifecycle.Event] =
        [.succeed, .fail, .release, .pause, .cancel]
        + [.retry, .scheduled, .network, .diskFull, .disk, .quota].flatMap {
            [.park($0, until: 50), .park($0, until: nil)]
        }
        + [.auth, .urlExpired, .sourceChanged].map { .block($0) }

    private static let commands: [TaskLifecycle.Event] = [.pause, .resume, .cancel, .retry]

    private static let tasksPerStep = 50

    @Test("after 100,000 random commands and events each task stands in the store as the machine has it in memory")
    func walk() async throws {
        var generator = SeededGenerator(seed: 2_026)
        let fixture = try StoreFixture()
        let store = fixture.store
        var model: [TaskID: TaskLifecycle] = [:]
        for outcome in try await store.add(Array(repeating: .sample(), count: 200), now: 1) {
            model[outcome.id] = TaskLifecycle()
        }
        var steps = 0
        while steps < 100_000 {
            let ids = Array(model.keys.sorted().shuffled(using: &generator).prefix(Self.tasksPerStep))
            switch Int.random(in: 0..<8, using: &generator) {
            case 0..<3:
                let command = try #require(Self.commands.randomElement(using: &generator))
                let outcome = try await store.apply(command, to: ids, owner: nil, now: 10)
                var refused = Set(outcome.refused.map(\.0))
                for id in ids {
                    guard var lifecycle = model[id] else { continue }
                    do throws(IllegalTransition) {
                        try lifecycle.apply(command)
                        model[id] = lifecycle
                    } catch {
                        #expect(refused.remove(id) != nil, "\(command) of \(id)")
                    }
                }
                #expect(refused.isEmpty)
            case 3..<6:
                var changes: [TaskChange] = []
                for id in ids {
                    guard let before = model[id], before.state == .queued,
                        let event = Self.endings.randomElement(using: &generator)
                    else { continue }
                    var lifecycle = before
                    try lifecycle.apply(.start)
                    try lifecycle.apply(event)
                    model[id] = lifecycle
                    let conclusion = TaskConclusion(
                        lifecycle: lifecycle, attempts: 1, failures: 0, finishedAt: lifecycle.state.isEnded ? 10 : nil)
                    changes.append(
                        .concluded(id, TaskProgress(bytesDone: 1, bytesTotal: 2, bytesFetched: 3), conclusion))
                }
                _ = try await store.write(changes, now: 10)
            case 6:
                _ = try await store.releaseDue(now: 60)
                for (id, lifecycle) in model where lifecycle.state == .waiting && lifecycle.notBefore != nil {
                    try model[id]?.apply(.release)
                }
            default:
                // Completed tasks are replaced with new ones.
                let done = model.filter { $0.value.state == .completed }.map(\.key)
                _ = try await store.remove(done, owner: nil, now: 10)
                for id in done { model[id] = nil }
                for outcome in try await store.add(Array(repeating: .sample(), count: done.count), now: 10) {
                    model[outcome.id] = TaskLifecycle()
                }
            }
            steps += ids.count
            guard steps % 5_000 == 0 else { continue }
            try compare(model, with: store)
        }
        try compare(model, with: store)
    }

    private func compare(_ model: [TaskID: TaskLifecycle], with store: TaskStore) throws {
        var stored: [TaskID: TaskLifecycle] = [:]
        for id in model.keys { stored[id] = try store.record(id, owner: nil)?.lifecycle }
        #expect(stored == model)
        let counts = Dictionary(grouping: model.values, by: \.state).mapValues(\.count)
        #expect(try store.counts(owner: nil) == counts)
    }
}
