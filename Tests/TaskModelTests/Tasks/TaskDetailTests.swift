import FoundationEssentials
import TaskModel
import Testing

@Suite struct TaskDetailTests {
    private var status: TaskStatus {
        TaskStatus(
            TaskRecord(
                id: TaskID(7), specification: TaskSpecification(url: "https://example.org/a"), owner: 1,
                lifecycle: TaskLifecycle(), createdAt: 0))
    }

    private func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    @Test("the fields of the status and of the details are in one object, and none is missing")
    func fields() throws {
        let text = try json(TaskDetail(status: status))
        for field in [#""id":7"#, #""history":null"#, #""live":null"#, #""waitingFor":null"#, #""rate":null"#] {
            #expect(text.contains(field), "\(field)")
        }
        let attempt = try json(TaskAttempt(startedAt: 1))
        for field in ["endedAt", "address", "name", "connect", "tls", "firstByte", "httpVersion", "status", "error"] {
            #expect(attempt.contains("\"\(field)\":null"), "\(field)")
        }
        let connection = try json(LiveConnection(address: nil, first: 0, next: 1, end: nil, rate: 2))
        #expect(connection == #"{"address":null,"end":null,"first":0,"next":1,"rate":2}"#)
        #expect(try json(LiveRateLimit(scope: .daemon, rate: 5)) == #"{"rate":5,"scope":"daemon"}"#)
    }

    @Test("details survive JSON; those of a daemon that does not report them are nil")
    func roundTrip() throws {
        let detail = TaskDetail(
            status: status,
            history: [TaskAttempt(startedAt: 1, endedAt: 2, address: "[::1]:80", bytes: 3, status: 200)],
            live: LiveTransfer(
                connections: [LiveConnection(address: "192.0.2.1:443", first: 0, next: 1, end: 2, rate: 3)],
                segments: [LiveSegment(first: 0, end: 1)], rateLimits: [LiveRateLimit(scope: .task, rate: 1)]),
            waitingFor: "starts soon")
        #expect(try JSONDecoder().decode(TaskDetail.self, from: Data(json(detail).utf8)) == detail)
        let old = try JSONDecoder().decode(TaskDetail.self, from: Data(json(status).utf8))
        #expect(old == TaskDetail(status: status))
    }
}
