import TestSupport
import Testing

@testable import TaskModel

@Suite("A task's lifecycle")
struct TaskLifecycleTests {
    private enum Outcome: Equatable {
        case becomes(TaskState, TaskReason? = nil, Milliseconds? = nil)
        case stays
        case refused
    }

    private static let events: [TaskLifecycle.Event] =
        [
            .start, .succeed, .confirm, .fail, .release, .abandon, .pause, .resume, .resumeNow, .cancel, .retry,
            .recheck,
            .update,
        ]
        + TaskReason.allCases.flatMap { [.park($0, until: 7), .park($0, until: nil), .block($0)] }

    /// Returns the outcome from a second definition of the state machine, by state instead of by event.
    private static func expected(_ event: TaskLifecycle.Event, in state: TaskState) -> Outcome {
        switch state {
        case .queued, .waiting:
            switch event {
            case .start: .becomes(.active)
            case .pause: .becomes(.paused, .user)
            case .cancel: .becomes(.cancelled)
            case .resume, .resumeNow: state == .queued ? .stays : .becomes(.queued)
            case .release: state == .waiting ? .becomes(.queued) : .refused
            case .retry: state == .queued ? .stays : .refused
            case .update: .stays
            default: .refused
            }
        case .active:
            switch event {
            case .succeed: .becomes(.completed)
            case .confirm: .becomes(.completed, .unchanged)
            case .fail: .becomes(.failed)
            case .release: .becomes(.queued)
            case .pause: .becomes(.paused, .user)
            case .cancel: .becomes(.cancelled)
            case .resume, .resumeNow, .retry, .update: .stays
            case .park(let reason, let until):
                [.retry, .scheduled, .network, .diskFull, .disk, .quota, .dependency].contains(reason)
                    ? .becomes(.waiting, reason, until) : .refused
            case .block(let reason):
                [.auth, .urlExpired, .sourceChanged].contains(reason) ? .becomes(.paused, reason) : .refused
            case .start, .abandon, .recheck: .refused
            }
        case .paused:
            switch event {
            case .pause: .becomes(.paused, .user)
            case .update: .stays
            case .resume, .resumeNow, .retry: .becomes(.queued)
            case .cancel: .becomes(.cancelled)
            default: .refused
            }
        case .failed: event == .retry ? .becomes(.queued) : event == .update ? .stays : .refused
        case .cancelled:
            switch event {
            case .retry: .becomes(.queued)
            case .cancel: .stays
            default: .refused
            }
        case .completed: event == .recheck || event == .retry ? .becomes(.queued) : .refused
        }
    }

    private static func lifecycle(in state: TaskState) throws -> TaskLifecycle {
        var lifecycle = TaskLifecycle()
        let way: [TaskLifecycle.Event] =
            switch state {
            case .queued: []
            case .active: [.start]
            case .waiting: [.start, .park(.retry, until: 5)]
            case .paused: [.start, .block(.auth)]
            case .completed: [.start, .succeed]
            case .failed: [.start, .fail]
            case .cancelled: [.cancel]
            }
        for event in way { try lifecycle.apply(event) }
        #expect(lifecycle.state == state)
        return lifecycle
    }

    @Test("every event in every state leads where the machine says", arguments: TaskState.allCases)
    func table(state: TaskState) throws {
        for event in Self.events {
            let before = try Self.lifecycle(in: state)
            var after = before
            let outcome: Outcome
            do throws(IllegalTransition) {
                let changed = try after.apply(event)
                outcome = changed ? .becomes(after.state, after.reason, after.notBefore) : .stays
            } catch {
                #expect(error == IllegalTransition(event: event, state: state))
                outcome = .refused
            }
            #expect(outcome == Self.expected(event, in: state), "\(event) in \(state)")
            if outcome == .stays || outcome == .refused { #expect(after == before, "\(event) in \(state)") }
        }
    }

    @Test("a pause holds what waits for a person's help, and changes nothing of what a person paused")
    func pauseOfPaused() throws {
        for reason in [TaskReason.auth, .urlExpired, .sourceChanged] {
            var lifecycle = TaskLifecycle()
            try lifecycle.apply(.start)
            try lifecycle.apply(.block(reason))
            #expect(try lifecycle.apply(.pause), "\(reason)")
            #expect(lifecycle == TaskLifecycle(paused: true), "\(reason)")
            #expect(try !lifecycle.apply(.pause), "\(reason)")
            var changes = TaskChanges()
            changes.url = "http://h/b"
            changes.password = .set("p")
            #expect(try lifecycle.updated(by: changes, now: 1) == lifecycle, "\(reason)")
        }
    }

    @Test("F84: a resumption starts what waits for a retry, and leaves what waits for its time or another task")
    func resumption() throws {
        for reason in [TaskReason.retry, .network, .diskFull, .disk, .quota, .scheduled, .dependency] {
            let keeps = reason == .scheduled || reason == .dependency
            let waiting = try #require(TaskLifecycle(state: .waiting, reason: reason, notBefore: 7))
            for event in [TaskLifecycle.Event.resume, .resumeNow] {
                var lifecycle = waiting
                let isChanged = try lifecycle.apply(event)
                #expect(isChanged == (event == .resumeNow || !keeps), "\(event) \(reason)")
                #expect(lifecycle == (isChanged ? TaskLifecycle() : waiting), "\(event) \(reason)")
            }
        }
    }

    @Test("a hundred thousand random events never leave the legal standings")
    func randomWalk() {
        var generator = SeededGenerator(seed: 11)
        var lifecycle = TaskLifecycle()
        var seen: Set<TaskState> = []
        for _ in 0..<100_000 {
            if lifecycle.state == .completed { lifecycle = TaskLifecycle() }
            guard let event = Self.events.randomElement(using: &generator) else { return }
            _ = try? lifecycle.apply(event)
            seen.insert(lifecycle.state)
            if lifecycle.state == .active {
                #expect(lifecycle.reason == nil && lifecycle.notBefore == nil)
            } else {
                let stored = TaskLifecycle(
                    state: lifecycle.state, reason: lifecycle.reason, notBefore: lifecycle.notBefore)
                #expect(stored == lifecycle)
            }
        }
        #expect(seen == Set(TaskState.allCases))
    }

    @Test("a task enters the queue ready, paused or for later")
    func entering() {
        #expect(TaskLifecycle().state == .queued)
        let paused = TaskLifecycle(paused: true, startAt: 9, now: 1)
        #expect((paused.state, paused.reason, paused.notBefore) == (.paused, .user, nil))
        let later = TaskLifecycle(startAt: 9, now: 1)
        #expect((later.state, later.reason, later.notBefore) == (.waiting, .scheduled, 9))
        #expect(TaskLifecycle(startAt: 9, now: 9) == TaskLifecycle())
    }

    @Test("only what waits for another task is abandoned with it", arguments: TaskReason.allCases)
    func abandoned(reason: TaskReason) throws {
        var lifecycle = TaskLifecycle()
        try lifecycle.apply(.start)
        guard (try? lifecycle.apply(.park(reason, until: nil))) != nil else { return }
        if reason == .dependency {
            #expect(lifecycle == TaskLifecycle(follows: true))
            #expect(try lifecycle.apply(.abandon) && lifecycle.state == .failed)
        } else {
            #expect(throws: IllegalTransition.self) { try lifecycle.apply(.abandon) }
        }
    }

    @Test("a stored combination that the machine never makes is refused", arguments: TaskState.allCases)
    func stored(state: TaskState) {
        let legal: Set<TaskReason?> =
            switch state {
            case .active: []
            case .queued, .failed, .cancelled: [nil]
            case .completed: [nil, .unchanged]
            case .waiting: [.retry, .scheduled, .network, .diskFull, .disk, .quota, .dependency]
            case .paused: [.user, .auth, .urlExpired, .sourceChanged]
            }
        for reason in [nil] + TaskReason.allCases.map(Optional.some) {
            let lifecycle = TaskLifecycle(state: state, reason: reason, notBefore: 4)
            #expect((lifecycle != nil) == legal.contains(reason), "\(state) \(String(describing: reason))")
            #expect(lifecycle?.notBefore == (lifecycle != nil && state == .waiting ? 4 : nil))
        }
    }

    @Test("a refusal says what to do instead")
    func refusal() {
        let retry = IllegalTransition(event: .resume, state: .failed)
        #expect(retry.description == "is failed; only a paused or waiting task can be resumed (see retry)")
        for event in [TaskLifecycle.Event.pause, .cancel, .retry] {
            #expect(IllegalTransition(event: event, state: .completed).description.hasPrefix("is completed; only a"))
        }
    }

    @Test("three states are ends, three reasons need a person")
    func ends() {
        #expect(TaskState.allCases.filter(\.isEnded) == [.completed, .failed, .cancelled])
        #expect(TaskReason.allCases.filter(\.needsPerson) == [.urlExpired, .auth, .sourceChanged])
        #expect(TaskPriority.allCases.map(\.rank) == [0, 1, 2, 3])
    }
}
