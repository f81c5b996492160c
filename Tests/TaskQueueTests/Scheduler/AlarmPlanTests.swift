import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("When the scheduler looks for work by itself")
struct AlarmPlanTests {
    private static let start: Milliseconds = 1_700_000_000_000

    /// The time of both clocks after so many milliseconds.
    private static func times(_ monotonic: Milliseconds, shift: Milliseconds = 0) -> AlarmPlan.Times {
        .init(wall: start + monotonic + shift, monotonic: monotonic)
    }

    private var plan = AlarmPlan(now: times(0))

    @Test("the alarm fires at the first of the moments, on the wall clock")
    mutating func first() {
        let now = Self.times(100)
        #expect(plan.update(task: nil, host: nil, now: now) == .none)
        #expect(plan.update(task: Self.start + 5_000, host: 3_000, now: now) == .set(Self.start + 3_000))
        #expect(plan.update(task: Self.start + 5_000, host: 3_002, now: now) == .none)
        #expect(plan.update(task: Self.start + 5_000, host: nil, now: now) == .set(Self.start + 5_000))
        #expect(plan.update(task: nil, host: nil, now: now) == .cancel)
        #expect(plan.update(task: nil, host: nil, now: now) == .none)
    }

    @Test("the time of the first waiting task is kept until tasks may have begun or ceased to wait")
    mutating func staleTime() {
        #expect(plan.isNextTaskStale)
        _ = plan.update(task: Self.start + 5_000, host: nil, now: Self.times(100))
        #expect(!plan.isNextTaskStale && plan.nextTask == Self.start + 5_000)
        _ = plan.fired()
        #expect(!plan.isNextTaskStale)
        plan.waitsChanged()
        #expect(plan.isNextTaskStale)
    }

    @Test("a failed query is repeated after a second, and no later for further failures")
    mutating func failedQuery() {
        plan.queryFailed(at: 100)
        plan.queryFailed(at: 900)
        #expect(plan.hasFailedQuery)
        #expect(plan.update(task: nil, host: nil, now: Self.times(900)) == .set(Self.start + 1_100))
        #expect(plan.fired() == true)
        #expect(!plan.hasFailedQuery)
        #expect(plan.fired() == false)
    }

    @Test("a small step of the wall clock does not count; a large one does, and the alarm is set anew")
    mutating func clockSteps() {
        #expect(plan.clockWasSet(now: Self.times(10, shift: 499)) == nil)
        #expect(plan.clockWasSet(now: Self.times(20, shift: -5_000)) == -5_499)
        _ = plan.update(task: Self.start, host: nil, now: Self.times(20, shift: -5_000))
        #expect(plan.reset() == .cancel)
        #expect(plan.reset() == .none)
    }

    @Test("after the end no alarm is set")
    mutating func stopped() {
        _ = plan.update(task: Self.start + 10, host: nil, now: Self.times(0))
        #expect(plan.stop() == .cancel)
        #expect(plan.update(task: Self.start + 10, host: nil, now: Self.times(0)) == .none)
        plan.queryFailed(at: 0)
        #expect(plan.fired() == true)
        #expect(plan.update(task: Self.start + 10, host: nil, now: Self.times(0)) == .none)
    }

    private enum Event: String, CaseIterable { case update, idle, failure, ring, clock, reset, stop }

    /// Every event in every state of the alarm: the action.
    @Test(
        "every event in every state of the alarm",
        arguments: [
            ("off", ["set", "none", "none", "no", "200000", "none", "none"]),
            ("set", ["none", "cancel", "none", "no", "200000", "cancel", "cancel"]),
            ("stopped", ["none", "none", "none", "no", "200000", "none", "none"]),
        ])
    mutating func transitions(state: String, expected: [String]) {
        if state != "off" { _ = plan.update(task: Self.start + 10_000, host: nil, now: Self.times(0)) }
        if state == "stopped" { _ = plan.stop() }
        func word(_ action: AlarmPlan.Action) -> String {
            switch action {
            case .none: "none"
            case .set: "set"
            case .cancel: "cancel"
            }
        }
        let found = Event.allCases.map { event in
            var plan = plan
            switch event {
            case .update: return word(plan.update(task: Self.start + 10_000, host: nil, now: Self.times(1)))
            case .idle: return word(plan.update(task: nil, host: nil, now: Self.times(1)))
            case .failure:
                plan.queryFailed(at: 1)
                return "none"
            case .ring: return plan.fired() ? "repeat" : "no"
            case .clock: return plan.clockWasSet(now: Self.times(1, shift: 200_000)).map { "\($0)" } ?? "none"
            case .reset: return word(plan.reset())
            case .stop: return word(plan.stop())
            }
        }
        #expect(found == expected)
    }

    @Test("under random events, a set alarm is never later than what waits", arguments: 0..<200)
    mutating func random(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var (now, alarm, failedAt) = (Milliseconds(0), Milliseconds?.none, Milliseconds?.none)
        for _ in 0..<200 {
            now += .random(in: 0...3_000, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                plan.queryFailed(at: now)
                failedAt = failedAt ?? now
            case 1 where alarm.map { $0 <= Self.start + now } ?? false:
                #expect(plan.fired() == (failedAt != nil))
                (alarm, failedAt) = (nil, nil)
            case 2:
                if plan.reset() == .cancel { alarm = nil }
            default:
                let task = Bool.random(using: &generator) ? Self.start + now + .random(in: 0...9_000) : nil
                let host = Bool.random(using: &generator) ? now + .random(in: 0...9_000) : nil
                switch plan.update(task: task, host: host, now: Self.times(now)) {
                case .none: break
                case .set(let time): alarm = time
                case .cancel: alarm = nil
                }
                let first = [task, host.map { Self.start + $0 }, failedAt.map { Self.start + $0 + 1_000 }]
                    .compactMap(\.self).min()
                #expect((alarm == nil) == (first == nil))
                if let alarm, let first { #expect((alarm - first).magnitude <= 2) }
            }
        }
    }
}
