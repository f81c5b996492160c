import ControlClient
import ControlProtocol
import TaskModel
import Testing

/// A daemon in memory that delivers a list of events to each connection.
private final class ScriptedSource: EventSource {
    enum Step {
        case event(Int64, TaskEvent.Kind)
        case silence
        case loss
    }

    var steps: [Step]
    private let last: Int64
    private let noteStart: (Int64?, Milliseconds?) -> Void

    init(last: Int64, _ steps: [Step], noteStart: @escaping (Int64?, Milliseconds?) -> Void) {
        self.last = last
        self.steps = steps
        self.noteStart = noteStart
    }

    func subscribe(
        after: Int64?, journal: String?, since: Milliseconds?, filter: EventFilter
    ) -> EventsSubscribeResult {
        noteStart(after, since)
        return EventsSubscribeResult(last: last, journal: (journal ?? "") + "j")
    }

    func nextEvent(until deadline: Deadline) throws(ClientError) -> TaskEvent? {
        guard !steps.isEmpty else { throw .malformedAnswer("waited for more events than there were") }
        switch steps.removeFirst() {
        case .event(let sequence, let type): return TaskEvent(sequence: sequence, at: 0, type: type)
        case .silence: return nil
        case .loss: throw .connectionLost(path: "/s")
        }
    }
}

@Suite("A follower of events")
struct EventFollowerTests {
    private final class Record {
        var starts: [Int64?] = []
        var times: [Milliseconds?] = []
        var reports = 0
        var sleeps = 0
    }

    private let record = Record()

    /// - Parameter connections: the daemon's behaviour at each attempt to connect; `nil` where there is no daemon.
    private func follower(
        after: Int64? = nil, since: Milliseconds? = nil, _ connections: [[ScriptedSource.Step]?]
    ) -> EventFollower {
        var rest = connections[...]
        return EventFollower(
            after: after, since: since, filter: EventFilter(),
            connect: { [record] () throws(ClientError) in
                guard let next = rest.popFirst(), let steps = next else { throw .noDaemon(paths: ["/s"], errno: 2) }
                return ScriptedSource(last: 7, steps) { after, since in
                    record.starts.append(after)
                    record.times.append(since)
                }
            }, sleep: { [record] _ in record.sleeps += 1 }, report: { [record] in record.reports += 1 })
    }

    private func sequences(_ follower: EventFollower, _ count: Int) throws -> [Int64] {
        try (0..<count).compactMap { _ in try follower.next(until: .never)?.sequence }
    }

    @Test("after a loss it goes on behind the last event, however often the daemon is away")
    func restarts() throws {
        let follower = follower(
            after: 3,
            [[.event(4, .added), .loss], nil, nil, [.loss], [.event(5, .completed), .loss], [.event(9, .failed)]])
        #expect(try sequences(follower, 3) == [4, 5, 9])
        #expect(record.starts == [3, 4, 4, 5])
        #expect(record.reports == 3 && record.sleeps == 5, "each absence is reported once")
    }

    @Test("without a start, what happens while the daemon is away is not lost")
    func onlyNew() throws {
        let follower = follower([[.loss], [.event(8, .added)]])
        #expect(try sequences(follower, 1) == [8])
        #expect(record.starts == [nil, 7])
    }

    @Test("each subscription names the journal of the last event")
    func journal() throws {
        let follower = follower(after: 3, [[.loss], [.event(8, .added), .loss], [.silence]])
        #expect(follower.journal == nil)
        #expect(try sequences(follower, 1) == [8])
        #expect(follower.journal == "j", "a connection that is lost before its first event changes nothing")
        #expect(try follower.next(until: .never) == nil)
        #expect(follower.journal == "j")
    }

    @Test("a start by time holds until the first event")
    func since() throws {
        let follower = follower(since: 50, [[.loss], [.event(4, .added), .loss], [.event(5, .added)]])
        #expect(try sequences(follower, 2) == [4, 5])
        #expect(record.starts == [nil, nil, 4])
        #expect(record.times.first == 50)
    }

    @Test("progress does not move the place in the journal")
    func progress() throws {
        let follower = follower(
            after: 3, [[.event(3, .progress), .event(4, .added), .event(4, .progress), .loss], [.silence]])
        #expect(try sequences(follower, 3) == [3, 4, 4])
        #expect(try follower.next(until: .never) == nil)
        #expect(record.starts == [3, 4])
    }

    @Test("no daemon at first is an error, as is a malformed message")
    func errors() {
        #expect(throws: ClientError.self) { _ = try follower([nil]).next(until: .never) }
        #expect(throws: ClientError.self) { _ = try follower([[]]).next(until: .never) }
    }
}
